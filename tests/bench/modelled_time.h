// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>

#include "tests/bench/counters.h"

namespace tier_bench {

// The modelled completion time of a phase, in microseconds. Constants and their sources: tests/rig/model.h.
struct ModelledTime {
    int slowest_cpu = 0;
    double instructions_us = 0;    // of the slowest CPU, as are the next two
    double memory_us = 0;
    double samples_us = 0;
    double page_moves_us = 0;    // whole machine, as are the rest: charged as if nothing overlapped
    double moving_calls_us = 0;
    double hint_faults_us = 0;
    double pte_updates_us = 0;

    double total_us() const {
        return instructions_us + memory_us + samples_us + page_moves_us + moving_calls_us + hint_faults_us +
               pte_updates_us;
    }
    // Of two phases that followed each other; slowest_cpu stays the first one's.
    ModelledTime& operator+=(const ModelledTime& next);
};

// Of the counters' differences over the phase; cpus are those that ran the benchmark's threads. Empty without a rig.
std::optional<ModelledTime> modelled_time(const Counters& phase, const std::set<int>& cpus);

std::string model_as_json();

}    // namespace tier_bench
