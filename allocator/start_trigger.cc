// SPDX-License-Identifier: Apache-2.0
#include "allocator/start_trigger.h"

#include <atomic>

#include "allocator/errno_guard.h"
#include "allocator/jemalloc_api.h"
#include "runtime/base/heap.h"
#include "runtime/kernel/syscalls.h"

namespace pghot {
namespace {

constinit std::atomic<int> own_process{0};
constinit thread_local bool polling = false;    // poll() may allocate, which comes by here again

void poll_if_armed() {
    // Acquire: pairs with the store of `armed`, so that poll is set.
    if (!start_signal.armed.load(std::memory_order_acquire)) return;
    if (polling || !is_own_process()) return;
    const ErrnoGuard errno_guard;
    polling = true;
    start_signal.poll();
    polling = false;
}

}    // namespace

void note_own_process() { own_process.store(sys::process_id(), std::memory_order_relaxed); }
bool is_own_process() { return own_process.load(std::memory_order_relaxed) == sys::process_id(); }

}    // namespace pghot

extern "C" void __wrap_je_te_event_trigger(void* thread, pghot::jemalloc::EventContext* context) {
    pghot::jemalloc::__real_je_te_event_trigger(thread, context);
    pghot::poll_if_armed();
}
