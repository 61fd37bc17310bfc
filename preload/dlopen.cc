// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <atomic>

#include "preload/next_functions.h"
#include "preload/visibility.h"

namespace pghot {
namespace {

using DlmopenFunction = void* (*)(Lmid_t name_space, const char* file, int mode);

// The function behind ours, looked for once. Threads that look at the same time find the same.
template <typename Function>
Function next(std::atomic<Function>& known, const char* name) {
    if (Function found = known.load(std::memory_order_relaxed)) return found;
    const DlsymFunction look_up = next_dlsym();
    if (look_up == nullptr) return nullptr;
    auto found = reinterpret_cast<Function>(look_up(RTLD_NEXT, name));
    known.store(found, std::memory_order_relaxed);
    return found;
}

constinit std::atomic<DlopenFunction> known_dlopen{nullptr};
constinit std::atomic<DlmopenFunction> known_dlmopen{nullptr};

}    // namespace

DlopenFunction next_dlopen() { return next(known_dlopen, "dlopen"); }

}    // namespace pghot

// A library opened with RTLD_DEEPBIND would find libc's malloc before ours, and its blocks would meet our free.
extern "C" {

PGHOT_VISIBLE PGHOT_JUMPS void* dlopen(const char* file, int mode) noexcept {
    const pghot::DlopenFunction open = pghot::next_dlopen();
    if (open == nullptr) return nullptr;
    return open(file, mode & ~RTLD_DEEPBIND);
}

// A namespace of its own has a C library and a heap of its own, and exchanges no blocks with ours.
PGHOT_VISIBLE PGHOT_JUMPS void* dlmopen(Lmid_t name_space, const char* file, int mode) noexcept {
    const pghot::DlmopenFunction open = pghot::next(pghot::known_dlmopen, "dlmopen");
    if (open == nullptr) return nullptr;
    return open(name_space, file, name_space == LM_ID_BASE ? mode & ~RTLD_DEEPBIND : mode);
}

}    // extern "C"
