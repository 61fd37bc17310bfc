// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace pghot {

// Registers a fresh mapping of the heap, binds it to its placement and counts it. Under jemalloc's locks, any thread;
// never fails: what cannot be registered or bound is plain memory.
void enter_mapping(void* at, size_t bytes, uint8_t placement);

// Gives pages of the heap back. Keeps errno.
void unmap_pages(void* at, size_t bytes);

// madvise on pages of the heap; the registry forgets what a purge threw away. Keeps errno; 0 or -1.
int advise_pages(void* at, size_t bytes, int advice);

}    // namespace pghot
