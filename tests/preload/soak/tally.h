// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace soak {

// What a run did, one row each: name as in the JSON.
#define SOAK_TALLIES(X)                                                                                 \
    X(operations)                                                                                       \
    X(allocations)                                                                                      \
    X(reallocs)                                                                                         \
    X(reallocs_that_moved)                                                                              \
    X(cross_thread_blocks)                                                                              \
    X(bytes_written) X(bytes_verified) X(errors) X(forks) X(threads_started) X(chains) X(pins) X(gifts) \
        X(pinned_bytes_verified) X(pins_over_realloc) X(locks) X(protections) X(advices) X(mappings) X(bytes_dropped)

// All threads add, main reads after they have ended. What a forked child adds stays in the child.
struct Tally {
    using Cell = std::atomic<uint64_t>;
#define SOAK_X(name) Cell name{0};
    SOAK_TALLIES(SOAK_X)
#undef SOAK_X
};
inline constinit Tally tally;

inline void count(Tally::Cell& cell, uint64_t amount = 1) { cell.fetch_add(amount, std::memory_order_relaxed); }

// A call that must not fail did: says so and ends the process with status 3.
[[noreturn]] void give_up(const char* what);

}    // namespace soak
