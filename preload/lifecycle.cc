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

// Linked with -z initfirst, so before the constructors of every other library. jemalloc registers its fork handlers at
// its first call; before a fork handlers run last-registered first, after it first-registered first. With jemalloc's
// before all others, every other handler may allocate. Priority 101: before startup.cc's constructor.
[[gnu::constructor(101)]] void at_load(int, char**, char** environment) {
    // libc's own constructor, which is still to come, stores the same pointer.
    if (environ == nullptr) environ = environment;
    jemalloc::jemalloc_free(jemalloc::jemalloc_malloc(1));
    heap_lookup = look_up;
    heap_object_lookup = [](uintptr_t address) { return extent_registry.find_object(address); };
}

}    // namespace
}    // namespace pghot
