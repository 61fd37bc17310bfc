// SPDX-License-Identifier: Apache-2.0
#include "runtime/policy/period_ladder.h"

#include <algorithm>

namespace pghot {
namespace {

constexpr double kLow = 0.4;    // of the limit: after a rung down at most 0.8
constexpr uint64_t kShortestPatienceNs = 2 * kNsPerSecond;
constexpr uint64_t kLongestPatienceNs = 64 * kNsPerSecond;
constexpr uint64_t kTakenBackNs = 5 * kNsPerSecond;    // up so soon after down: down was wrong

double ratio(uint64_t part, uint64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}    // namespace

// Of the limit: 1 is at it.
double PeriodLadder::sampler_load(const SamplingCost& cost, uint64_t share_ns) const {
    if (share_ns == 0) return cost.sampler_cpu_ns == 0 ? 0 : 2;    // others use it all: less, but not nothing
    return ratio(cost.sampler_cpu_ns, cost.elapsed_ns) / ratio(share_ns, kNsPerSecond);
}

double PeriodLadder::interrupt_load(const SamplingCost& cost) const {
    return ratio(cost.samples * kInterruptNs, cost.program_cpu_ns) / ratio(limit_permille_, 1000);
}

void PeriodLadder::step(TimeNs now, const SamplingCost& cost, uint64_t share_ns, bool may_go_down) {
    if (cost.elapsed_ns == 0) return;
    const double sampler = sampler_load(cost, share_ns);
    const double interrupts = interrupt_load(cost);
    const double load = std::max(sampler, interrupts);
    const double lasting = std::min(load, last_load_);
    last_load_ = load;
    if (lasting > 1) {
        last_load_ = 0;    // what it costs now is to be seen
        note_up(now);
        // Waking up costs more than what is done then: wake up less.
        const bool by_waiting = sampler >= interrupts && 2 * cost.record_cpu_ns < cost.sampler_cpu_ns;
        return go_up(lasting, by_waiting && wait_ < kMostWait);
    }
    if (load >= kLow || !may_go_down || now < next_down_ || period_ + wait_ == 0) return;
    go_down();
    last_down_ = now;
    next_down_ = now + std::max(patience_ns_, kShortestPatienceNs);
}

void PeriodLadder::go_up(double load, bool by_waiting) {
    unsigned& rung = by_waiting ? wait_ : period_;
    const unsigned most = by_waiting ? kMostWait : kMostPeriod;
    for (; load > 1 && rung < most; load /= 2) ++rung;
}

// Samples first: delay hurts less than blindness.
void PeriodLadder::go_down() {
    unsigned& rung = period_ > 0 ? period_ : wait_;
    --rung;
}

void PeriodLadder::note_up(TimeNs now) {
    const bool taken_back = last_down_.ns != 0 && now - last_down_ <= static_cast<int64_t>(kTakenBackNs);
    patience_ns_ =
        taken_back ? std::clamp(2 * patience_ns_, kShortestPatienceNs, kLongestPatienceNs) : kShortestPatienceNs;
    next_down_ = now + patience_ns_;
    last_down_ = {};
}

}    // namespace pghot
