// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <atomic>

#include "preload/next_dlopen.h"
#include "preload/visibility.h"

namespace pghot {
namespace {
constinit std::atomic<DlopenFunction> next{nullptr};
}    // namespace

DlopenFunction next_dlopen() {
    if (DlopenFunction known = next.load(std::memory_order_relaxed)) return known;
    auto found = reinterpret_cast<DlopenFunction>(dlsym(RTLD_NEXT, "dlopen"));
    next.store(found, std::memory_order_relaxed);
    return found;
}

}    // namespace pghot

// A library opened with RTLD_DEEPBIND would find libc's malloc before ours, and its blocks would meet our free.
//
// libc finds out by the return address who called, for $ORIGIN, RUNPATH and the namespace. The last call must
// therefore be a jump that leaves the caller's return address in place: optimised in every build type.
extern "C" PGHOT_VISIBLE __attribute__((optimize("O2", "omit-frame-pointer"))) void* dlopen(const char* file,
                                                                                            int mode) noexcept {
    const pghot::DlopenFunction open = pghot::next_dlopen();
    if (open == nullptr) return nullptr;
    return open(file, mode & ~RTLD_DEEPBIND);
}
