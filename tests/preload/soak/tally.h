// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace soak {

// What a run did, one row each: name as in the JSON, meaning.
#define SOAK_TALLIES(X)                                                \
    X(operations, "cards of the decks that were played")               \
    X(allocations, "by malloc, calloc, posix_memalign, aligned_alloc") \
    X(reallocs, "of all sizes")                                        \
    X(reallocs_that_moved, "to another address")                       \
    X(cross_thread_blocks, "taken over from another thread")           \
    X(bytes_written, "of patterns")                                    \
    X(bytes_verified, "in memory; a word of a page counts as a word")  \
    X(forks, "children, which verify, allocate, free and end with 0")  \
    X(threads_started, "workers and visitors")                         \
    X(chains, "arrays grown step by step and shrunk again")            \
    X(pins, "ranges lent to a pipe")                                   \
    X(gifts, "ranges given to a pipe")                                 \
    X(pinned_bytes_verified, "as they came out of the pipes")          \
    X(pins_over_realloc, "pinned blocks that were resized")            \
    X(locks, "ranges locked")                                          \
    X(protections, "ranges made read-only or inaccessible for a time") \
    X(advices, "ranges with an madvise that keeps their contents")     \
    X(mappings, "made by the program itself")                          \
    X(bytes_dropped, "by MADV_DONTNEED")

// All threads add, main reads after they have ended. What a forked child adds stays in the child.
struct Tally {
    using Cell = std::atomic<uint64_t>;
#define SOAK_X(name, meaning) Cell name{0};
    SOAK_TALLIES(SOAK_X)
#undef SOAK_X
};
inline constinit Tally tally;

inline void count(Tally::Cell& cell, uint64_t amount = 1) { cell.fetch_add(amount, std::memory_order_relaxed); }

// A call that must not fail did: says so and ends the process with status 3.
[[noreturn]] void give_up(const char* what);

}    // namespace soak
