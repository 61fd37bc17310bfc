// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/phase.h"

namespace tier_bench {
namespace {

JsonObject as_json(const ModelledTime& time) {
    JsonObject json;
    json.add("slowest_cpu", time.slowest_cpu);
    json.add_us("instructions_us", time.instructions_us);
    json.add_us("memory_us", time.memory_us);
    json.add_us("samples_us", time.samples_us);
    json.add_us("page_moves_us", time.page_moves_us);
    json.add_us("moving_calls_us", time.moving_calls_us);
    json.add_us("hint_faults_us", time.hint_faults_us);
    json.add_us("pte_updates_us", time.pte_updates_us);
    return json;
}

JsonObject as_json(const RigCounters& rig) {
    JsonObject cpus;
    for (const auto& [cpu, counts] : rig.cpus) {
        Counts without_node = counts;
        without_node.erase("node");    // a place, not a count: its difference says nothing
        cpus.add(std::to_string(cpu), without_node);
    }
    JsonObject json;
    json.add("machine", rig.machine);
    json.add("cpus", cpus);
    return json;
}

}    // namespace

Phase& Phase::operator+=(const Phase& next) {
    wall_us += next.wall_us;
    counted += next.counted;
    if (modelled && next.modelled) *modelled += *next.modelled;
    return *this;
}

void add_phase(JsonObject& json, const Phase& phase) {
    json.add_us("wall_us", phase.wall_us);
    if (phase.modelled) {
        json.add_us("modelled_us", phase.modelled->total_us());
        json.add("modelled", as_json(*phase.modelled));
    } else {
        json.raw("modelled_us", "null").raw("modelled", "null");
    }
    json.add("vmstat", phase.counted.vmstat);
    if (phase.counted.rig)
        json.add("rig", as_json(*phase.counted.rig));
    else
        json.raw("rig", "null");
}

}    // namespace tier_bench
