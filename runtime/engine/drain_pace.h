// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/base/units.h"

namespace pghot {

// How long to sleep until the next drain of the rings: so that the fullest ring stays about a quarter full, a plan is
// never more than 20 ms late, and a program that sleeps is woken for ten times a second only. Where that costs too much
// or there is nothing to do, the longest waits double with each rung, up to 320 ms and a second.
class DrainPace {
public:
    // `fullest` in percent of the fullest ring at this drain, `rung` 0 to 4. Answers the next wait in ns.
    uint64_t next(unsigned fullest, bool samples_came, unsigned rung) {
        const uint64_t longest = std::min((samples_came ? kLongestBusyNs : kLongestIdleNs) << rung, kNsPerSecond);
        if (fullest > kTargetPercent)
            wait_ns_ /= 2;
        else if (fullest < kTargetPercent / 4 || !samples_came)
            wait_ns_ += wait_ns_ / 2;
        wait_ns_ = std::clamp(wait_ns_, kShortestNs, longest);
        return wait_ns_;
    }

private:
    static constexpr unsigned kTargetPercent = 25;
    static constexpr uint64_t kShortestNs = 1 * kNsPerMs;
    static constexpr uint64_t kLongestBusyNs = 20 * kNsPerMs;
    static constexpr uint64_t kLongestIdleNs = 100 * kNsPerMs;
    uint64_t wait_ns_ = 10 * kNsPerMs;
};

}    // namespace pghot
