// SPDX-License-Identifier: Apache-2.0
// Programs take free and its kin out of libc by a handle: CDLL("libc.so.6").free in Python, or out of any library, as a
// look-up goes on to what that library needs. libc's free ends the program when it is given a block of ours. So what is
// found in libc and has a function of ours is answered with ours; not with the visible one, as a program's own malloc
// may look in this way for the one to build upon.

#include <dlfcn.h>

#include <atomic>

#include "preload/next_functions.h"
#include "preload/own_functions.h"
#include "preload/visibility.h"

namespace pghot {
namespace {

constinit std::atomic<DlsymFunction> known_dlsym{nullptr};
constinit std::atomic<void*> known_libc{nullptr};

void* libc_handle() {
    if (void* known = known_libc.load(std::memory_order_relaxed)) return known;
    const DlopenFunction open = next_dlopen();
    void* libc = open == nullptr ? nullptr : open("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    known_libc.store(libc, std::memory_order_relaxed);
    return libc;
}

void* found_or_own(DlsymFunction look_up, void* library, const char* name, void* own) {
    void* found = look_up(library, name);
    if (found == nullptr) return nullptr;
    void* libc = libc_handle();
    return libc != nullptr && look_up(libc, name) == found ? own : found;
}

}    // namespace

// The first step asks by libc's version of the name, as dlsym(RTLD_NEXT, "dlsym") would need what it looks for.
DlsymFunction next_dlsym() {
    if (DlsymFunction known = known_dlsym.load(std::memory_order_relaxed)) return known;
    auto of_libc = reinterpret_cast<DlsymFunction>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"));
    if (of_libc == nullptr) return nullptr;
    auto found = reinterpret_cast<DlsymFunction>(of_libc(RTLD_NEXT, "dlsym"));
    known_dlsym.store(found, std::memory_order_relaxed);
    return found;
}

}    // namespace pghot

extern "C" PGHOT_VISIBLE PGHOT_JUMPS void* dlsym(void* library, const char* name) noexcept {
    const pghot::DlsymFunction look_up = pghot::next_dlsym();
    if (look_up == nullptr) return nullptr;
    if (library != RTLD_DEFAULT && library != RTLD_NEXT)
        if (void* own = pghot::own_function(name)) return pghot::found_or_own(look_up, library, name, own);
    return look_up(library, name);
}
