// SPDX-License-Identifier: Apache-2.0
// C++ operators new and delete. No exception symbol is referenced: a second copy of libstdc++'s exception state breaks
// failing allocations. What a failure needs is looked for in the program.
//
// The operators lean on each other and on malloc through the visible symbols, as libstdc++'s do (new[] on new, sized
// delete on plain delete, new on malloc): a program that replaces only some of them gets its own for the rest too.

#include <cstddef>
#include <cstdlib>
#include <new>

#include "preload/next_functions.h"
#include "preload/program_runtime.h"
#include "preload/visibility.h"

// The plain operators as defined here, whatever the program did to the visible symbols. Made by the linker (--defsym),
// as a compiler that saw an alias could take a comparison with the visible symbol for always true.
extern "C" __attribute__((visibility("hidden"))) void* own_plain_new(size_t bytes);
extern "C" __attribute__((visibility("hidden"))) void* own_aligned_new(size_t bytes, std::align_val_t alignment);

namespace {

using pghot::program_new_handler;
using pghot::throw_bad_alloc;

// [new.delete.single]: call the handler and try again until there is none; the handler may throw through us.
template <typename Allocate>
[[gnu::cold]] [[gnu::noinline]] void* allocate_or_throw(const void* caller, Allocate allocate) {
    for (;;) {
        const std::new_handler handler = program_new_handler(caller);
        if (handler == nullptr) {
            throw_bad_alloc(caller);
            return nullptr;    // no C++ library in this process
        }
        handler();
        if (void* block = allocate()) return block;
    }
}

using PlainNew = void* (*)(size_t);
using AlignedNew = void* (*)(size_t, std::align_val_t);
PlainNew visible_plain_new() { return &::operator new; }
AlignedNew visible_aligned_new() { return &::operator new; }

}    // namespace

PGHOT_VISIBLE void* operator new(size_t bytes) {
    void* block = malloc(bytes);
    if (block != nullptr) [[likely]]
        return block;
    return allocate_or_throw(__builtin_return_address(0), [bytes] { return malloc(bytes); });
}

PGHOT_VISIBLE void* operator new(size_t bytes, std::align_val_t alignment) {
    void* block = aligned_alloc(static_cast<size_t>(alignment), bytes);
    if (block != nullptr) [[likely]]
        return block;
    return allocate_or_throw(__builtin_return_address(0),
                             [=] { return aligned_alloc(static_cast<size_t>(alignment), bytes); });
}

// Jumps: the plain form sees who called.
PGHOT_VISIBLE PGHOT_JUMPS void* operator new[](size_t bytes) { return ::operator new(bytes); }
PGHOT_VISIBLE PGHOT_JUMPS void* operator new[](size_t bytes, std::align_val_t alignment) {
    return ::operator new(bytes, alignment);
}

// The nothrow forms answer null where the plain form throws. We cannot catch, so when the plain form is the program's,
// or a new-handler that may throw is set, the program's own C++ library does it: its nothrow form calls the visible
// plain form inside a try block.
PGHOT_VISIBLE void* operator new(size_t bytes, const std::nothrow_t& tag) noexcept {
    if (visible_plain_new() == &own_plain_new) [[likely]] {
        void* block = malloc(bytes);
        if (block != nullptr || program_new_handler(__builtin_return_address(0)) == nullptr) [[likely]]
            return block;
    }
    return pghot::call_program_nothrow_new(bytes, tag);
}
PGHOT_VISIBLE void* operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t& tag) noexcept {
    if (visible_aligned_new() == &own_aligned_new) [[likely]] {
        void* block = aligned_alloc(static_cast<size_t>(alignment), bytes);
        if (block != nullptr || program_new_handler(__builtin_return_address(0)) == nullptr) [[likely]]
            return block;
    }
    return pghot::call_program_nothrow_new(bytes, alignment, tag);
}
PGHOT_VISIBLE void* operator new[](size_t bytes, const std::nothrow_t& tag) noexcept {
    return ::operator new(bytes, tag);
}
PGHOT_VISIBLE void* operator new[](size_t bytes, std::align_val_t alignment, const std::nothrow_t& tag) noexcept {
    return ::operator new(bytes, alignment, tag);
}

// Sizes and alignments given to delete are not used: programs that give a wrong one run on glibc, and here.
PGHOT_VISIBLE void operator delete(void* block) noexcept { free(block); }
PGHOT_VISIBLE void operator delete(void* block, std::align_val_t) noexcept { free(block); }
PGHOT_VISIBLE void operator delete(void* block, size_t) noexcept { ::operator delete(block); }
PGHOT_VISIBLE void operator delete(void* block, const std::nothrow_t&) noexcept { ::operator delete(block); }
PGHOT_VISIBLE void operator delete(void* block, size_t, std::align_val_t alignment) noexcept {
    ::operator delete(block, alignment);
}
PGHOT_VISIBLE void operator delete(void* block, std::align_val_t alignment, const std::nothrow_t&) noexcept {
    ::operator delete(block, alignment);
}
PGHOT_VISIBLE void operator delete[](void* block) noexcept { ::operator delete(block); }
PGHOT_VISIBLE void operator delete[](void* block, std::align_val_t alignment) noexcept {
    ::operator delete(block, alignment);
}
PGHOT_VISIBLE void operator delete[](void* block, size_t) noexcept { ::operator delete[](block); }
PGHOT_VISIBLE void operator delete[](void* block, const std::nothrow_t&) noexcept { ::operator delete[](block); }
PGHOT_VISIBLE void operator delete[](void* block, size_t, std::align_val_t alignment) noexcept {
    ::operator delete[](block, alignment);
}
PGHOT_VISIBLE void operator delete[](void* block, std::align_val_t alignment, const std::nothrow_t&) noexcept {
    ::operator delete[](block, alignment);
}
