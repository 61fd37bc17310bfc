// SPDX-License-Identifier: Apache-2.0
#include "preload/program_runtime.h"

#include <dlfcn.h>
#include <link.h>

#include <initializer_list>

#include "preload/next_functions.h"

// Weak: bound at load when the program was linked with a C++ library, null otherwise.
extern "C" {
[[gnu::weak]] std::new_handler weak_get_new_handler() __asm__("_ZSt15get_new_handlerv");
[[gnu::weak]] void weak_throw_bad_alloc() __asm__("_ZSt17__throw_bad_allocv");
}

namespace pghot {
namespace {

// A C program may bring a C++ library later and out of the global scope (a Python module): it is loaded, but the weak
// names above were bound before. Found by the name that GNU and LLVM libraries have.
void* find_in_program(const char* symbol) {
    const DlsymFunction look_up = next_dlsym();
    const DlopenFunction open = next_dlopen();
    if (look_up == nullptr || open == nullptr) return nullptr;
    if (void* found = look_up(RTLD_NEXT, symbol)) return found;
    for (const char* name : {"libstdc++.so.6", "libc++.so.1"}) {
        void* library = open(name, RTLD_LAZY | RTLD_NOLOAD);
        if (library == nullptr) continue;
        if (void* found = look_up(library, symbol)) return found;
    }
    return nullptr;
}

// In the library that `caller` lies in, or in those that it needs.
void* find_at_caller(const char* symbol, const void* caller) {
    Dl_info unused;
    link_map* library = nullptr;
    if (dladdr1(caller, &unused, reinterpret_cast<void**>(&library), RTLD_DL_LINKMAP) == 0) return nullptr;
    const DlsymFunction look_up = next_dlsym();
    return library == nullptr || look_up == nullptr ? nullptr : look_up(library, symbol);
}

template <typename Function>
Function* bound_or_found(Function* bound, const char* symbol, const void* caller) {
    if (bound != nullptr) return bound;
    if (void* found = find_at_caller(symbol, caller)) return reinterpret_cast<Function*>(found);
    return reinterpret_cast<Function*>(find_in_program(symbol));
}

using NothrowNew = void*(size_t, const std::nothrow_t&);
using AlignedNothrowNew = void*(size_t, std::align_val_t, const std::nothrow_t&);

}    // namespace

std::new_handler program_new_handler(const void* caller) {
    auto* get = bound_or_found(&weak_get_new_handler, "_ZSt15get_new_handlerv", caller);
    return get == nullptr ? nullptr : get();
}

void throw_bad_alloc(const void* caller) {
    auto* raise = bound_or_found(&weak_throw_bad_alloc, "_ZSt17__throw_bad_allocv", caller);
    if (raise != nullptr) raise();
}

void* call_program_nothrow_new(size_t bytes, const std::nothrow_t& tag) noexcept {
    auto* allocate = reinterpret_cast<NothrowNew*>(find_in_program("_ZnwmRKSt9nothrow_t"));
    return allocate == nullptr ? nullptr : allocate(bytes, tag);
}

void* call_program_nothrow_new(size_t bytes, std::align_val_t alignment, const std::nothrow_t& tag) noexcept {
    auto* allocate = reinterpret_cast<AlignedNothrowNew*>(find_in_program("_ZnwmSt11align_val_tRKSt9nothrow_t"));
    return allocate == nullptr ? nullptr : allocate(bytes, alignment, tag);
}

}    // namespace pghot
