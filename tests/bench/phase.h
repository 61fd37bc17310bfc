// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>

#include "tests/bench/counters.h"
#include "tests/bench/json.h"
#include "tests/bench/modelled_time.h"

namespace tier_bench {

// A measured part of a run: what the clock, the kernel and the emulated machine say about it.
struct Phase {
    std::string name;
    double wall_us = 0;
    Counters counted;                        // differences over the phase
    std::optional<ModelledTime> modelled;    // empty outside the rig

    // The whole of two phases that followed each other. Keeps the name.
    Phase& operator+=(const Phase& next);
};

// wall_us, modelled_us (null outside the rig), modelled, vmstat, rig.
void add_phase(JsonObject& json, const Phase& phase);

}    // namespace tier_bench
