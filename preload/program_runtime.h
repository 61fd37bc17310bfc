// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <new>

// The program's own C++ library, for the moment an operator new fails. Nothing here runs on a path that succeeds.
// The library needs no C++ library itself, and a C program has none: every answer may be "there is none".
namespace pghot {

// What std::get_new_handler says; null without a C++ library. `caller` is an address of the code that called new: a
// plug-in of a C program may have a C++ library inside itself.
std::new_handler program_new_handler(const void* caller);

// Throws std::bad_alloc out of the caller's C++ library. Returns only when there is none.
void throw_bad_alloc(const void* caller);

// The C++ library's own nothrow operators, which catch what the visible plain operator throws; null without one.
void* call_program_nothrow_new(size_t bytes, const std::nothrow_t& tag) noexcept;
void* call_program_nothrow_new(size_t bytes, std::align_val_t alignment, const std::nothrow_t& tag) noexcept;

}    // namespace pghot
