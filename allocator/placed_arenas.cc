// SPDX-License-Identifier: Apache-2.0
#include "allocator/placed_arenas.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "allocator/errno_guard.h"
#include "allocator/page_calls.h"
#include "allocator/placement.h"
#include "allocator/processors.h"
#include "runtime/base/units.h"
#include "runtime/kernel/answer.h"

namespace pghot {
namespace {

using jemalloc::Arena;
using jemalloc::ExtentHooks;

constexpr unsigned kMaxGroups = 8;    // arenas per placement, fewer on machines with fewer CPUs

// The hooks come first, so that a hook finds its placement behind the pointer it is given.
struct PlacedHooks {
    ExtentHooks hooks{};
    uint8_t placement = 0;
    // Where mappings are limited: mapped and not handed out yet, from here to the end of the chunk; 0: nothing.
    std::atomic<uintptr_t> rest{0};
};

uintptr_t round_up_to_chunk(uintptr_t value) { return chunk_of(value + kChunkBytes - 1); }

void* map_pages(size_t bytes) {
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at != MAP_FAILED) return at;
    answer(KernelCall::mmap, -1);
    return nullptr;
}

// Failure (too many mappings) leaks address space.
void unmap_rest(uintptr_t begin, uintptr_t end) {
    if (end > begin) answer(KernelCall::munmap, munmap(reinterpret_cast<void*>(begin), end - begin));
}

// Pages at a multiple of `alignment` (a power of two, at least 2 MiB), or null.
void* map_aligned(size_t bytes, size_t alignment) {
    void* mapping = map_pages(bytes);
    if (mapping == nullptr) return nullptr;
    if (reinterpret_cast<uintptr_t>(mapping) % alignment == 0) return mapping;
    unmap_rest(reinterpret_cast<uintptr_t>(mapping), reinterpret_cast<uintptr_t>(mapping) + bytes);
    const size_t roomy = bytes + alignment;
    mapping = map_pages(roomy);
    if (mapping == nullptr) return nullptr;
    const auto begin = reinterpret_cast<uintptr_t>(mapping);
    const uintptr_t aligned = (begin + alignment - 1) & ~(alignment - 1);
    unmap_rest(begin, aligned);
    unmap_rest(aligned + bytes, begin + roomy);
    return reinterpret_cast<void*>(aligned);
}

// `bytes` of what an earlier extent of this placement left of its last chunk, or null.
void* take_from_rest(PlacedHooks& placed, size_t bytes) {
    uintptr_t begin = placed.rest.load(std::memory_order_relaxed);
    for (;;) {
        const uintptr_t end = round_up_to_chunk(begin);
        if (end - begin < bytes) return nullptr;
        const uintptr_t left = begin + bytes == end ? 0 : begin + bytes;
        if (placed.rest.compare_exchange_weak(begin, left, std::memory_order_relaxed))
            return reinterpret_cast<void*>(begin);
    }
}

void keep_rest(PlacedHooks& placed, uintptr_t begin) {
    const uintptr_t before = placed.rest.exchange(begin, std::memory_order_relaxed);
    if (before != 0) unmap_pages(reinterpret_cast<void*>(before), round_up_to_chunk(before) - before);
}

// Whole chunks, so that one 2 MiB chunk has one placement. jemalloc asks for little more than a block where mappings
// are limited, and what it did not ask for would count: it goes to the next extents. Else it stays untouched behind a
// large extent.
void* map_pages(PlacedHooks& placed, size_t bytes, size_t alignment) {
    const bool limited = !jemalloc::je_opt_retain;
    if (limited && alignment <= kPageBytes)
        if (void* extent = take_from_rest(placed, bytes)) return extent;
    const size_t whole = round_up_to_chunk(bytes);
    if (whole < bytes) return nullptr;
    void* extent = map_aligned(whole, std::max<size_t>(alignment, kChunkBytes));
    if (extent == nullptr) return nullptr;
    enter_mapping(extent, whole, placed.placement);
    if (limited && whole != bytes) keep_rest(placed, reinterpret_cast<uintptr_t>(extent) + bytes);
    return extent;
}

void* map_extent(ExtentHooks* hooks, void* at, size_t bytes, size_t alignment, bool* zero, bool* commit, unsigned) {
    if (at != nullptr) return nullptr;    // jemalloc wishes to grow in place; it can do without
    const ErrnoGuard errno_guard;
    void* extent = map_pages(*reinterpret_cast<PlacedHooks*>(hooks), bytes, alignment);
    if (extent == nullptr) return nullptr;
    *zero = true;
    *commit = true;
    return extent;
}

bool unmap_extent(ExtentHooks*, void* at, size_t bytes, bool, unsigned) {
    if (jemalloc::je_opt_retain) return true;    // jemalloc keeps it for later
    unmap_pages(at, bytes);
    return false;
}

bool purge_lazily(ExtentHooks*, void* at, size_t, size_t offset, size_t length, unsigned) {
    return advise_pages(static_cast<char*>(at) + offset, length, MADV_FREE) != 0;
}

bool purge_now(ExtentHooks*, void* at, size_t, size_t offset, size_t length, unsigned) {
    return advise_pages(static_cast<char*>(at) + offset, length, MADV_DONTNEED) != 0;
}

bool split_extent(ExtentHooks*, void*, size_t, size_t, size_t, bool, unsigned) { return false; }
// Neighbours in one arena have one placement, and Linux takes one call over two mappings.
bool merge_extents(ExtentHooks*, void*, size_t, void*, size_t, bool, unsigned) { return false; }

// commit, decommit: null, all memory is committed. destroy: null, our arenas live as long as the process.
constexpr ExtentHooks kHooks{map_extent,   unmap_extent, nullptr,      nullptr,      nullptr,
                             purge_lazily, purge_now,    split_extent, merge_extents};

struct HooksOfAllPlacements {
    PlacedHooks of[kMaxPlacements];
    constexpr HooksOfAllPlacements() {
        for (uint8_t i = 0; i < kMaxPlacements; ++i) {
            of[i].hooks = kHooks;
            of[i].placement = i;
        }
    }
};
// jemalloc keeps pointers to them.
constinit HooksOfAllPlacements placed_hooks;

using Group = std::array<std::atomic<Arena*>, kMaxGroups>;
constinit std::array<Group, kMaxPlacements> arenas{};

constinit std::atomic<unsigned> group_count{0};    // 0: not counted yet
constinit std::atomic<unsigned> next_group{0};
constinit thread_local uint8_t own_group_plus_one = 0;

unsigned count_groups() {
    const ErrnoGuard errno_guard;
    return std::min(allowed_processors(), kMaxGroups);
}

// Threads are dealt out in turn and stay: a thread finds its own freed blocks again.
unsigned own_group() {
    if (own_group_plus_one != 0) return own_group_plus_one - 1U;
    unsigned groups = group_count.load(std::memory_order_relaxed);
    if (groups == 0) {
        groups = count_groups();
        group_count.store(groups, std::memory_order_relaxed);
    }
    const unsigned group = next_group.fetch_add(1, std::memory_order_relaxed) % groups;
    own_group_plus_one = static_cast<uint8_t>(group + 1);
    return group;
}

Arena* create_arena(uint8_t placement) {
    const ErrnoGuard errno_guard;
    ExtentHooks* hooks = &placed_hooks.of[placement].hooks;
    unsigned index = 0;
    size_t index_bytes = sizeof index;
    // jemalloc takes the address and size of the pointer. NOLINTNEXTLINE(bugprone-sizeof-expression)
    if (jemalloc::mallctl("arenas.create", &index, &index_bytes, &hooks, sizeof hooks) != 0) return nullptr;
    return index < jemalloc::kArenaLimit ? jemalloc::je_arenas[index] : nullptr;
}

// Two threads of a group may both get here (creation itself is in turn, under jemalloc's lock): the later one's arena
// goes into another free slot, so that none is wasted while there is room.
Arena* publish(Group& slots, unsigned group, Arena* arena) {
    for (unsigned i = 0; i < kMaxGroups; ++i) {
        Arena* present = nullptr;
        std::atomic<Arena*>& slot = slots[(group + i) % kMaxGroups];
        if (slot.compare_exchange_strong(present, arena, std::memory_order_acq_rel)) return arena;
    }
    return arena;
}

}    // namespace

Arena* placed_arena(uint8_t placement) {
    const unsigned group = own_group();
    Group& slots = arenas[placement];
    if (Arena* arena = slots[group].load(std::memory_order_acquire)) return arena;
    Arena* arena = create_arena(placement);
    return arena == nullptr ? nullptr : publish(slots, group, arena);
}

}    // namespace pghot
