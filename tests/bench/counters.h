// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace tier_bench {

using Counts = std::map<std::string, uint64_t>;

// The rig's counters (tests/rig, /proc/rig_counters): the machine's and each CPU's.
struct RigCounters {
    Counts machine;
    std::map<int, Counts> cpus;
};

// What the kernel and, on the rig, the emulated machine have counted so far.
struct Counters {
    Counts vmstat;    // the migration and NUMA rows only; rows that this kernel lacks are absent
    std::optional<RigCounters> rig;
};

Counters read_counters();
Counters operator-(const Counters& after, const Counters& before);
Counters& operator+=(Counters& sum, const Counters& more);

}    // namespace tier_bench
