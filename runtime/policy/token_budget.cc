// SPDX-License-Identifier: Apache-2.0
#include "runtime/policy/token_budget.h"

#include <algorithm>

namespace pghot {

uint64_t TokenBudget::cost_ns(uint64_t bytes) const {
    // 10^9 ns / 2^20 bytes = 1953125 / 2048, which keeps the product of 2^42 bytes within 64 bits.
    const uint64_t divisor = 2048 * rate_mbps_;
    return (bytes * 1953125 + divisor - 1) / divisor;
}

// Relaxed: the word itself is all that is shared, it publishes nothing.
BudgetAnswer TokenBudget::take(uint64_t bytes, TimeNs now) {
    const uint64_t cost = cost_ns(bytes);
    uint64_t free_at = free_at_.load(std::memory_order_relaxed);
    for (;;) {
        if (free_at > now.ns) return {.granted = false, .retry_at = TimeNs{free_at}};
        // The first grant of all starts the clock: there was no one to be late.
        const uint64_t oldest = free_at == 0 ? now.ns : now.ns - std::min(now.ns, credit_ns_);
        const uint64_t next = std::max(free_at, oldest) + cost;
        if (free_at_.compare_exchange_weak(free_at, next, std::memory_order_relaxed)) return {.granted = true};
    }
}

}    // namespace pghot
