// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/base/counters.h"
#include "runtime/config/tunables.h"
#include "runtime/engine/job.h"
#include "runtime/policy/period_ladder.h"
#include "runtime/policy/plateau.h"
#include "runtime/policy/promotion_policy.h"

namespace pghot {

// How often the program is sampled and the rings are drained: PGHOT_IBS_PERIOD, less where that would cost more than
// PGHOT_SAMPLER_CPU, less still while there is nothing to do. Reads counters and clocks; owned by the sampler thread.
class SamplingRate {
public:
    SamplingRate(const Counters& counters, const Tunables& tunables);

    // After every drain and plan: whether there is something to do.
    void note_drain(TimeNs now, const PromotionPolicy& policy);
    // CPU time that a drain with samples took.
    void note_record_cpu(uint64_t ns) { record_cpu_ns_ += ns; }
    // About once a second: what sampling costs, told to the job's other ranks too.
    void end_second(TimeNs now, Job& job);

    // Operations between two samples, as the PMU takes them.
    uint64_t period() const;
    // Drains and housekeeping may be this many times rarer, as a power of two.
    unsigned wait_rung() const { return std::max(ladder_.wait_rung(), plateau_.rung()); }

private:
    struct Totals {
        TimeNs time{};
        uint64_t sampler_cpu_ns = 0;
        uint64_t process_cpu_ns = 0;
        uint64_t mover_cpu_ns = 0;
        uint64_t samples = 0;
    };
    Totals read_totals(TimeNs now) const;

    const Counters& counters_;
    uint64_t base_period_;
    uint64_t limit_ns_;    // CPU time a second for the samplers of the job
    PeriodLadder ladder_;
    Plateau plateau_;
    PlateauSigns seen_{};    // totals at the last drain
    Totals second_{};        // at the end of the last second
    uint64_t record_cpu_ns_ = 0;
};

}    // namespace pghot
