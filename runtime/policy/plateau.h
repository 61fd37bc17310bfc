// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/base/units.h"

namespace pghot {

// What a drain brought that tells whether there is something to do.
struct PlateauSigns {
    uint64_t dram = 0;              // samples served by DRAM
    uint64_t extmem = 0;            // samples served by the lower tier
    uint64_t pages_planned = 0;     // by the policy
    uint64_t pages_returned = 0;    // known at home and seen in the lower tier: somebody else moved them
    uint64_t new_threads = 0;
    uint64_t new_chunks = 0;    // sampled for the first time: new memory
};

// The time when nothing is left to do: what is hot is at home, or nothing gets hot. Then samples are taken for nothing,
// and it goes quiet, a rung (half of the samples) a second:
//
//   awake --3 s without plans, next to nothing from the lower tier--> 1 --1 s--> 2 --> 3 --> 4 (a sixteenth)
//         --12 s without plans, a steady part from the lower tier--> 1 ... 2 (a quarter)
//   any   --plans, new threads, new memory, pages moved by others, more from the lower tier--> awake, at once
//
// A rung needs 256 samples with a level in its second, so that what remains tells of a change within some tenths of a
// second; whoever is sampled less than that costs nothing worth saving. Pure: time is passed in. Owned by the sampler.
class Plateau {
public:
    static constexpr unsigned kMostRung = 4;
    static constexpr unsigned kSteadyRung = 2;

    // After every drain and plan. The rung from now on: the period is PGHOT_IBS_PERIOD << rung, and drains are rarer.
    unsigned step(TimeNs now, const PlateauSigns& signs);
    unsigned rung() const { return rung_; }

private:
    bool is_disturbed() const;
    bool has_risen() const;
    void wake(TimeNs now);
    void end_window(TimeNs now);

    PlateauSigns window_{};    // of the running second
    TimeNs window_start_{};
    double share_ = 0;    // of the lower tier in the samples, in the calm so far
    uint64_t calm_seconds_ = 0;
    bool share_known_ = false;
    unsigned rung_ = 0;
};

}    // namespace pghot
