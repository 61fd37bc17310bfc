// SPDX-License-Identifier: Apache-2.0
// The first thing of the library that runs. Start-up of the runtime, fork and exit: startup.cc.

#include <unistd.h>

#include "allocator/extent_registry.h"
#include "allocator/jemalloc_api.h"
#include "allocator/placement.h"
#include "runtime/base/heap.h"

namespace pghot {
namespace {

HeapExtent look_up(uintptr_t address) {
    HeapExtent extent = extent_registry.find(address);
    extent.bound = extent.ours && placement_rules().placements[extent.placement].place != BirthPlace::kLocal;
    return extent;
}

// The GNU C library aligns every block to 16 bytes, and programs keep marks in the low four bits of an address;
// jemalloc's smallest class is of 8 bytes. Leaving it out costs a block of 1 to 8 bytes 8 more, still half of
// libc's 32.
void align_the_smallest_blocks() {
    jemalloc::je_sz_size2index_tab[0] = jemalloc::kClassOf16Bytes;
    jemalloc::je_sz_size2index_tab[1] = jemalloc::kClassOf16Bytes;
}

// Linked with -z initfirst, so before the constructors of every other library. jemalloc registers its fork handlers at
// its first call; before a fork handlers run last-registered first, after it first-registered first. With jemalloc's
// before all others, every other handler may allocate. Priority 101: before startup.cc's constructor.
[[gnu::constructor(101)]] void at_load(int, char**, char** environment) {
    // libc's own constructor, which is still to come, stores the same pointer.
    if (environ == nullptr) environ = environment;
    jemalloc::jemalloc_free(jemalloc::jemalloc_malloc(1));
    align_the_smallest_blocks();
    heap_lookup = look_up;
}

}    // namespace
}    // namespace pghot
