// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "allocator/jemalloc_api.h"

// A freed large block keeps its pages for a while, as the next large temporary takes them again: faulting them in anew
// costs many times the rest. But a program that frees much and goes on with little must be rid of it, and jemalloc's
// decay only runs while an arena is used. So what freed blocks hold is counted, and bounded by what live ones do.
namespace pghot {

// Smaller blocks decay as in plain jemalloc, which gives larger ones back at once (its oversize_threshold).
inline constexpr size_t kMinCountedBytes = size_t{8} << 20;

// Each on any thread, under no lock, with the bytes of the extent.

void count_taken(const jemalloc::Extent& extent);
// A block has changed its size where it is.
void count_resized(size_t old_bytes, size_t new_bytes);
// An extent has gone back to `arena`, with or without pages in it. May give all that lies freed there back to the
// kernel.
void count_freed(jemalloc::Thread* thread, unsigned arena, size_t bytes, bool has_pages);

}    // namespace pghot
