// SPDX-License-Identifier: Apache-2.0
// A freed extent keeps its pages for a while, as the next large temporary takes them again: faulting them in anew costs
// many times the rest, and plain jemalloc, which purges extents of 8 MiB at once, pays it at every turn. But a program
// that frees much and goes on with little must be rid of it, and jemalloc's decay only runs while an arena is used. So
// extents of 128 MiB are purged at once, and an arena holds at most as many freed pages as it has in use. The latter is
// looked at when an extent comes that jemalloc joins with its neighbours: the slabs of small blocks, which it does not
// join, decay as in plain jemalloc, as programs that fill and empty a heap of small objects in turn would pay for every
// round.

#include <algorithm>

#include "allocator/errno_guard.h"
#include "allocator/jemalloc_api.h"
#include "runtime/base/units.h"

namespace pghot {
namespace {

// For programs that have nothing in use while they free and take temporaries in turn.
constexpr size_t kAlwaysHeldPages = (size_t{64} << 20) / kPageBytes;

constexpr size_t kPurgedAtOnceBytes = size_t{128} << 20;
constexpr size_t kLeastJoinedBytes = size_t{16} << 10;    // SC_LARGE_MINCLASS

void bound_freed_pages(jemalloc::Thread* thread, jemalloc::PageShard& pages, unsigned arena) {
    const size_t freed = jemalloc::je_eset_npages_get(pages.dirty_extents());
    const size_t used = pages.active_pages.load(std::memory_order_relaxed);
    if (freed <= std::max(kAlwaysHeldPages, used) || thread == nullptr) return;
    const ErrnoGuard errno_guard;
    jemalloc::je_arena_decay(thread, jemalloc::je_arenas[arena], false, true);
}

}    // namespace
}    // namespace pghot

extern "C" {

void __wrap_je_pa_dalloc(pghot::jemalloc::Thread* thread, pghot::jemalloc::PageShard* pages,
                         pghot::jemalloc::Extent* extent, bool* deferred_work) {
    const unsigned arena = extent->arena();
    const bool is_joined = extent->bytes() >= pghot::kLeastJoinedBytes;
    pghot::jemalloc::__real_je_pa_dalloc(thread, pages, extent, deferred_work);
    if (is_joined) pghot::bound_freed_pages(thread, *pages, arena);
}

bool __wrap_je_pac_init(pghot::jemalloc::Thread* thread, pghot::jemalloc::PageAllocator* allocator, void* base,
                        void* map, void* cache, void* now, size_t, ssize_t dirty_decay_ms, ssize_t muzzy_decay_ms,
                        void* statistics, void* lock) {
    return pghot::jemalloc::__real_je_pac_init(thread, allocator, base, map, cache, now, pghot::kPurgedAtOnceBytes,
                                               dirty_decay_ms, muzzy_decay_ms, statistics, lock);
}

}    // extern "C"
