// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/counters.h"

#include <fstream>
#include <sstream>
#include <string_view>

namespace tier_bench {
namespace {

bool is_wanted(std::string_view row) {
    for (const std::string_view prefix : {"pgpromote_", "pgdemote_", "pgmigrate_", "thp_migration_", "numa_pte_updates",
                                          "numa_huge_pte_updates", "numa_hint_faults", "numa_pages_migrated"})
        if (row.starts_with(prefix)) return true;
    return false;
}

Counts read_vmstat() {
    Counts counts;
    std::ifstream file("/proc/vmstat");
    std::string row;
    for (uint64_t value; file >> row >> value;)
        if (is_wanted(row)) counts[row] = value;
    return counts;
}

std::optional<RigCounters> read_rig() {
    std::ifstream file("/proc/rig_counters");
    if (!file) return std::nullopt;
    RigCounters counters;
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string name;
        uint64_t value = 0;
        words >> name >> value;
        Counts& counts = name == "cpu" ? counters.cpus[static_cast<int>(value)] : counters.machine;
        if (name != "cpu") counts[name] = value;
        while (words >> name >> value) counts[name] = value;
    }
    return counters;
}

Counts difference(const Counts& after, const Counts& before) {
    Counts result;
    for (const auto& [name, value] : after) {
        const auto found = before.find(name);
        result[name] = value - (found == before.end() ? 0 : found->second);
    }
    return result;
}

}    // namespace

Counters read_counters() { return {read_vmstat(), read_rig()}; }

Counters operator-(const Counters& after, const Counters& before) {
    Counters result{difference(after.vmstat, before.vmstat), std::nullopt};
    if (!after.rig || !before.rig) return result;
    result.rig.emplace();
    result.rig->machine = difference(after.rig->machine, before.rig->machine);
    for (const auto& [cpu, counts] : after.rig->cpus) {
        const auto found = before.rig->cpus.find(cpu);
        if (found != before.rig->cpus.end()) result.rig->cpus[cpu] = difference(counts, found->second);
    }
    return result;
}

Counters& operator+=(Counters& sum, const Counters& more) {
    for (const auto& [name, value] : more.vmstat) sum.vmstat[name] += value;
    if (!more.rig) return sum;
    if (!sum.rig) sum.rig.emplace();
    for (const auto& [name, value] : more.rig->machine) sum.rig->machine[name] += value;
    for (const auto& [cpu, counts] : more.rig->cpus)
        for (const auto& [name, value] : counts) sum.rig->cpus[cpu][name] += value;
    return sum;
}

}    // namespace tier_bench
