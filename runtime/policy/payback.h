// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/policy/ticks.h"

namespace pghot {

// What a move costs and what it saves, as measured lately by whoever feeds the policy. Zero: not known yet.
struct MoveEconomy {
    uint64_t page_ns = 0;    // CPU time of the mover for a page, its share of the call included
    // Waiting time that the accesses behind one sample would have been spared in DRAM: sampling period x difference of
    // the tiers' latencies x the share of a latency that is waited for.
    int64_t sample_gain_ns = 0;
    bool gain_known = false;
};

// Heat is taken to last as long again as it has lasted, at least this long: jobs run for minutes, and on a host whose
// processors stand still at times a move seems many times dearer than it is.
inline constexpr Tick kMinHorizon = ticks_of_ms(60000);

// Whether samples of `evidence` ticks, in memory that has been in use for `age` ticks, save more than moving `pages`
// takes. What was hot for a minute may cost a minute's saving.
constexpr bool pays(const MoveEconomy& economy, uint64_t pages, uint64_t samples, Tick evidence, Tick age) {
    if (!economy.gain_known || economy.page_ns == 0) return true;
    if (economy.sample_gain_ns <= 0) return false;    // the lower tier is not slower now
    const uint64_t gain = samples * static_cast<uint64_t>(economy.sample_gain_ns);
    const Tick horizon = age > kMinHorizon ? age : kMinHorizon;
    return gain * horizon >= pages * economy.page_ns * (evidence > 0 ? evidence : 1);
}

}    // namespace pghot
