// SPDX-License-Identifier: Apache-2.0
#include "allocator/freed_large_blocks.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "allocator/errno_guard.h"

namespace pghot {
namespace {

using Count = std::atomic<int64_t>;

// Bytes that freed large blocks hold, by arena and together. Estimates: small blocks and growth in place take from them
// unseen, so they are high at times and memory goes back early. A purge starts an arena's count anew.
constinit std::array<Count, jemalloc::kArenaLimit> held_by_arena{};
constinit Count held{0};
constinit Count live{0};    // bytes in large blocks

// For programs that have no large block while they free and take them in turn.
constexpr int64_t kAlwaysHeld = int64_t{64} << 20;

constexpr size_t kMinTakenBytes = size_t{1} << 20;

int64_t most_held() { return std::max(kAlwaysHeld, live.load(std::memory_order_relaxed)); }

int64_t counted(size_t bytes) { return bytes >= kMinCountedBytes ? static_cast<int64_t>(bytes) : 0; }

void change_held(unsigned arena, int64_t bytes) {
    held_by_arena[arena].fetch_add(bytes, std::memory_order_relaxed);
    held.fetch_add(bytes, std::memory_order_relaxed);
}

}    // namespace

void count_taken(const jemalloc::Extent& extent) {
    if (counted(extent.bytes()) != 0) live.fetch_add(counted(extent.bytes()), std::memory_order_relaxed);
    // From the kernel, or given back to it before; or hardly worth it: what smaller ones take is not seen.
    if (extent.reads_as_zeros() || extent.bytes() < kMinTakenBytes) return;
    const int64_t in_arena = held_by_arena[extent.arena()].load(std::memory_order_relaxed);
    if (in_arena > 0) change_held(extent.arena(), -std::min(in_arena, static_cast<int64_t>(extent.bytes())));
}

void count_resized(size_t old_bytes, size_t new_bytes) {
    const int64_t change = counted(new_bytes) - counted(old_bytes);
    if (change != 0) live.fetch_add(change, std::memory_order_relaxed);
}

void count_freed(jemalloc::Thread* thread, unsigned arena, size_t bytes, bool has_pages) {
    if (counted(bytes) == 0) return;
    live.fetch_sub(counted(bytes), std::memory_order_relaxed);
    if (has_pages) change_held(arena, counted(bytes));
    if (held.load(std::memory_order_relaxed) <= most_held()) return;
    const ErrnoGuard errno_guard;
    change_held(arena, -held_by_arena[arena].load(std::memory_order_relaxed));
    jemalloc::je_arena_decay(thread, jemalloc::je_arenas[arena], false, true);
}

}    // namespace pghot
