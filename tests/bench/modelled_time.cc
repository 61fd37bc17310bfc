// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/modelled_time.h"

#include <fmt/core.h>

#include "tests/rig/model.h"

namespace tier_bench {
namespace {

double count(const Counts& counts, const char* name) {
    const auto found = counts.find(name);
    return found == counts.end() ? 0 : static_cast<double>(found->second);
}

}    // namespace

ModelledTime& ModelledTime::operator+=(const ModelledTime& next) {
    instructions_us += next.instructions_us;
    memory_us += next.memory_us;
    samples_us += next.samples_us;
    page_moves_us += next.page_moves_us;
    moving_calls_us += next.moving_calls_us;
    hint_faults_us += next.hint_faults_us;
    pte_updates_us += next.pte_updates_us;
    return *this;
}

std::optional<ModelledTime> modelled_time(const Counters& phase, const std::set<int>& cpus) {
    if (!phase.rig) return std::nullopt;
    ModelledTime slowest;
    for (const auto& [cpu, counts] : phase.rig->cpus) {
        if (!cpus.contains(cpu)) continue;
        ModelledTime time;
        time.slowest_cpu = cpu;
        time.instructions_us = count(counts, "instructions") / RIG_INSTRUCTIONS_PER_NS / 1000;
        time.memory_us = count(counts, "memory_ns") / 1000;
        time.samples_us = count(counts, "samples") * RIG_SAMPLE_NS / 1000;
        if (time.total_us() >= slowest.total_us()) slowest = time;
    }
    slowest.page_moves_us = count(phase.vmstat, "pgmigrate_success") * RIG_PAGE_MOVE_NS / 1000;
    slowest.moving_calls_us = count(phase.rig->machine, "moving_calls") * RIG_MOVING_CALL_NS / 1000;
    slowest.hint_faults_us = count(phase.vmstat, "numa_hint_faults") * RIG_HINT_FAULT_NS / 1000;
    slowest.pte_updates_us = count(phase.vmstat, "numa_pte_updates") * RIG_PTE_UPDATE_NS / 1000;
    return slowest;
}

std::string model_as_json() {
    return fmt::format(
        "{{\"local_dram_ns\":{},\"remote_dram_ns\":{},\"cxl_ns\":{},\"l2_hit_cycles\":{},\"l3_hit_cycles\":{},"
        "\"cycles_per_us\":{},\"instructions_per_ns\":{},\"l1_lines\":{},\"l2_lines\":{},\"l3_lines\":{},"
        "\"dram_mb_per_s\":{},\"cxl_mb_per_s\":{},\"threads_per_node\":{},\"page_move_ns\":{},\"moving_call_ns\":{},"
        "\"hint_fault_ns\":{},\"pte_update_ns\":{},\"sample_ns\":{}}}",
        RIG_LOCAL_DRAM_NS, RIG_REMOTE_DRAM_NS, RIG_CXL_NS, RIG_L2_HIT_CYCLES, RIG_L3_HIT_CYCLES, RIG_CYCLES_PER_US,
        RIG_INSTRUCTIONS_PER_NS, RIG_L1_LINES, RIG_L2_LINES, RIG_L3_LINES, RIG_DRAM_MB_PER_S, RIG_CXL_MB_PER_S,
        RIG_THREADS_PER_NODE, RIG_PAGE_MOVE_NS, RIG_MOVING_CALL_NS, RIG_HINT_FAULT_NS, RIG_PTE_UPDATE_NS,
        RIG_SAMPLE_NS);
}

}    // namespace tier_bench
