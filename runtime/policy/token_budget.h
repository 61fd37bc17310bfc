// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/base/units.h"

namespace pghot {

// The answer to a request for bytes.
struct BudgetAnswer {
    bool granted = false;
    TimeNs retry_at{};    // when refused: not before this time
};

// The rate limit, for any number of threads and processes that share one 64-bit word: the time at which the budget is
// free again. Taking pushes that time on by what the bytes cost. No lock and no balance to repair: whoever dies leaves
// a word that time itself makes right.
//
// What holds, for requests of at most one batch:
//   - from the first grant on, granted bytes <= rate x time + one batch
//   - a caller that comes late (timer slack) gets the lateness back, up to the time of one batch: no rate is lost, and
//     an idle hour saves up no more than that
//   - a request larger than what is free delays the next one and is never dropped
class TokenBudget {
public:
    // `free_at` is shared by all who use the budget, 0 at first; nanoseconds of CLOCK_MONOTONIC. `rate_mbps` as
    // PGHOT_RATE_LIMIT_MBPS, in 2^20 bytes a second, 0 is taken as 1. `batch_bytes`: the largest usual request.
    TokenBudget(std::atomic<uint64_t>& free_at, uint32_t rate_mbps, uint64_t batch_bytes)
        : free_at_(free_at), rate_mbps_(rate_mbps > 0 ? rate_mbps : 1), credit_ns_(cost_ns(batch_bytes)) {}

    // Any thread. Up to 2^42 bytes.
    BudgetAnswer take(uint64_t bytes, TimeNs now);
    // Time that this many bytes take at the rate, rounded up.
    uint64_t cost_ns(uint64_t bytes) const;
    // Time of one batch, which a late caller gets back.
    uint64_t credit_ns() const { return credit_ns_; }

private:
    std::atomic<uint64_t>& free_at_;
    uint64_t rate_mbps_;
    uint64_t credit_ns_;
};

}    // namespace pghot
