// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/base/units.h"

namespace pghot {

// What one interrupt of a sample costs the thread that it hits: perf's handler, the page walk, the record. IBS figures
// of others are 1 to 3 us; tests/rig/model.h counts the same 2 us.
inline constexpr uint64_t kInterruptNs = 2000;

// What sampling cost in an interval of about a second.
struct SamplingCost {
    uint64_t elapsed_ns = 0;
    uint64_t sampler_cpu_ns = 0;    // of pghot-sampler
    uint64_t record_cpu_ns = 0;     // of these, for what grows with the samples: draining and recording
    uint64_t program_cpu_ns = 0;    // of the process without our threads
    uint64_t samples = 0;           // interrupts: those that came, and those lost
};

// Keeps the cost of sampling below a limit, in two ladders of powers of two:
//
//   wait      times between drains and looks at the thread list x1 x2 x4 x8 x16: costs delay, no samples
//   period    PGHOT_IBS_PERIOD x1 x2 ... x64: costs samples
//
// The sampler's CPU time may be its share of the job's limit; the interrupts, which hit the program's threads, the same
// percentage of the program's own CPU time. Above either in two seconds in a row (a start, or a plan of many chunks, is
// dear once) it goes up as far as it is above; below two fifths of both it comes down one rung, since a rung down at
// most doubles the cost. Between lies the dead band. A rung down that had to be taken back makes the next try wait
// twice as long, 2 s to 64 s.
//
// Pure: time and costs are passed in. Owned by the sampler thread.
class PeriodLadder {
public:
    static constexpr unsigned kMostPeriod = 6;
    static constexpr unsigned kMostWait = 4;

    // `limit_permille`: PGHOT_SAMPLER_CPU in tenths of a percent.
    explicit PeriodLadder(uint32_t limit_permille) : limit_permille_(limit_permille) {}

    // `share_ns`: CPU time a second that this process's sampler may use. `may_go_down` false: what the cost fell for
    // will not last. Intervals without time are ignored.
    void step(TimeNs now, const SamplingCost& cost, uint64_t share_ns, bool may_go_down);

    unsigned period_rung() const { return period_; }
    unsigned wait_rung() const { return wait_; }

private:
    double sampler_load(const SamplingCost& cost, uint64_t share_ns) const;
    double interrupt_load(const SamplingCost& cost) const;
    void go_up(double load, bool by_waiting);
    void go_down();
    void note_up(TimeNs now);

    uint32_t limit_permille_;
    unsigned period_ = 0;
    unsigned wait_ = 0;
    double last_load_ = 0;
    TimeNs last_down_{};
    TimeNs next_down_{};
    uint64_t patience_ns_ = 0;
};

}    // namespace pghot
