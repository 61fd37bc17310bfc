// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstring>

#include "preload/cli/doctor.h"
#include "runtime/report/json_writer.h"
#include "runtime/report/report.h"

namespace pghot {
namespace {

std::string size_text(uint64_t bytes) {
    const double gib = static_cast<double>(bytes) / static_cast<double>(1024 * kMiB);
    return fmt::format("{:.1f} GiB", gib);
}

std::string cpus_of(const Topology& topology, unsigned node) {
    NodeMask none;
    CpuMask cpus;
    for (unsigned cpu = 0; cpu < topology.cpu_count; ++cpu)
        if (topology.node_of_cpu[cpu] == static_cast<int>(node)) cpus.insert(cpu);
    char storage[256];
    const std::string text(write_value(storage, {}, cpus));
    return text.empty() ? "-" : text;
}

std::string distances_of(const Topology& topology, unsigned node) {
    std::string text;
    for (unsigned from = 0; from < topology.node_count; ++from) {
        if (!topology.nodes[from].has_cpus) continue;
        text += fmt::format("{}{}", text.empty() ? "" : " ", topology.distance[from][node]);
    }
    return text;
}

std::string tier_evidence(const Topology& topology) {
    switch (topology.evidence) {
        case TierEvidence::kUser:
            return "PGHOT_LOWER_NODES or PGHOT_TOP_NODES says so";
        case TierEvidence::kMemoryTier:
            return "the kernel's memory tiers";
        case TierEvidence::kHmat:
            return "read latency in the firmware's HMAT";
        case TierEvidence::kDistance:
            return "distance from the nodes with CPUs";
        case TierEvidence::kNone:
            break;
    }
    return "nothing: no node is slower than the slowest node with CPUs";
}

std::string nodes_text(const DoctorFacts& facts) {
    const Topology& topology = facts.topology;
    std::string text = fmt::format("Nodes\n  {:<5} {:<6} {:>10} {:>10}  {:<12} {:<12} {}\n", "node", "tier", "memory",
                                   "free", "CPUs", "distance from CPUs", "");
    for (unsigned number = 0; number < topology.node_count; ++number) {
        const Node& node = topology.nodes[number];
        if (!node.online_memory && !node.has_cpus) continue;
        text +=
            fmt::format("  {:<5} {:<6} {:>10} {:>10}  {:<12} {:<12} {}\n", number, node.lower_tier ? "lower" : "top",
                        size_text(node.total_bytes), size_text(facts.free_bytes[number]), cpus_of(topology, number),
                        distances_of(topology, number), node.allowed ? "" : "outside this cpuset");
    }
    return text + fmt::format("  tiers told by: {}\n", tier_evidence(topology));
}

std::string errno_text(int error) { return error == 0 ? "yes" : fmt::format("no ({})", std::strerror(error)); }

std::string source_text(const DoctorFacts& facts) {
    std::string text =
        fmt::format("Sources of samples\n  ibs: {}: {}\n", errno_text(facts.ibs_error), ibs_advice(facts));
    if (facts.ibs_found)
        text += fmt::format("  ibs_op is PMU type {}, l3missonly {}, swfilt {}, ldlat {}\n", facts.ibs.type,
                            facts.ibs.l3missonly ? "yes" : "no (older than Zen 4)",
                            facts.ibs.swfilt ? "yes" : "no (before Linux 6.14)",
                            facts.ibs.ldlat ? "yes" : "no (older than Zen 5 or Linux 6.15)");
    if (facts.perf_event_paranoid != DoctorFacts::kUnknown)
        text += fmt::format("  kernel.perf_event_paranoid={}\n", facts.perf_event_paranoid);
    return text;
}

std::string balancing_text(int mask) {
    if ((mask & 2) != 0)
        return "the kernel promotes pages itself (memory tiering); libpghot takes part in what it leaves";
    if ((mask & 1) != 0) return "the kernel moves pages between nodes itself; expect moves behind libpghot's back";
    return {};
}

std::string kernel_text(const DoctorFacts& facts) {
    std::string text = fmt::format("Moving\n  move_pages: {}\n", errno_text(facts.move_pages_error));
    if (facts.numa_balancing > 0)
        text +=
            fmt::format("  kernel.numa_balancing={}: {}\n", facts.numa_balancing, balancing_text(facts.numa_balancing));
    if (facts.damon_runs) text += "  DAMON is on: its schemes may move pages too\n";
    if (facts.numad_runs) text += "  numad runs: it moves whole processes between nodes\n";
    return text;
}

std::string job_text(const DoctorFacts& facts) {
    if (facts.job.empty()) return "Job\n  none: a process started here has its budgets for itself\n";
    return fmt::format("Job\n  {}: a process started here shares its budgets with the job's others on this node\n",
                       facts.job);
}

std::string verdict_text(Verdict verdict, const Tunables& tunables) {
    switch (verdict) {
        case Verdict::kOff:
            return "PGHOT_MODE=off: only the allocator is in use.";
        case Verdict::kNoLowerTier:
            return "One tier of memory: programs run on the allocator alone; no thread is started. If a node is slower "
                   "and the kernel does not say so, name it with PGHOT_LOWER_NODES.";
        case Verdict::kBoundElsewhere:
            return "This shell's memory policy (numactl -m, -p or -i) keeps memory where it says: programs started "
                   "from here are "
                   "sampled, and nothing moves. Without it, or with PGHOT_PLACEMENT=slow, hot pages move.";
        case Verdict::kNoMigration:
            return "Hot pages would be found, but the kernel refuses move_pages here (often a container's profile).";
        case Verdict::kNoSource:
            return "There is a lower tier, but no way to sample accesses: nothing is moved.";
        case Verdict::kObserves:
            return "Accesses are sampled and reported; nothing is moved (PGHOT_MODE=observe).";
        case Verdict::kTiers:
            break;
    }
    return fmt::format(
        "Hot pages move from the lower tier to the DRAM of the CPUs that use them, once a program's heap has grown to "
        "{} MiB, at up to {} MiB/s.",
        tunables.start_min_bytes / kMiB, tunables.rate_limit_mbps);
}

std::string_view verdict_name(Verdict verdict) {
    switch (verdict) {
        case Verdict::kOff:
            return "off";
        case Verdict::kNoLowerTier:
            return "no lower tier";
        case Verdict::kBoundElsewhere:
            return "bound elsewhere";
        case Verdict::kNoMigration:
            return "no migration";
        case Verdict::kNoSource:
            return "no source";
        case Verdict::kObserves:
            return "observes";
        case Verdict::kTiers:
            break;
    }
    return "tiers";
}

void write_nodes(JsonWriter& json, const DoctorFacts& facts) {
    json.begin_array("nodes");
    for (unsigned number = 0; number < facts.topology.node_count; ++number) {
        const Node& node = facts.topology.nodes[number];
        if (!node.online_memory && !node.has_cpus) continue;
        json.begin_object();
        json.number("node", number);
        json.text("tier", node.lower_tier ? "lower" : "top");
        json.boolean("allowed", node.allowed);
        json.number("total_bytes", node.total_bytes);
        json.number("free_bytes", facts.free_bytes[number]);
        json.text("cpus", node.has_cpus ? cpus_of(facts.topology, number) : "");
        json.signed_number("memory_tier", node.memory_tier);
        json.number("read_latency_ns", node.read_latency_ns);
        json.end_object();
    }
    json.end_array();
}

}    // namespace

std::string doctor_text(const DoctorFacts& facts, const Tunables& tunables) {
    return fmt::format("libpghot {} on Linux {}\n\n{}\n{}\n{}\n{}\nWhat will happen\n  {}\n", PGHOT_VERSION,
                       facts.kernel, nodes_text(facts), source_text(facts), kernel_text(facts), job_text(facts),
                       verdict_text(verdict_of(facts, tunables), tunables));
}

std::string doctor_json(const DoctorFacts& facts, const Tunables& tunables) {
    const Verdict verdict = verdict_of(facts, tunables);
    std::string text;
    const auto sink = [&](std::span<const char> piece) { return text.append(piece.data(), piece.size()), true; };
    JsonWriter json(sink);
    json.begin_object();
    json.text("version", PGHOT_VERSION);
    json.text("kernel", facts.kernel);
    json.text("verdict", verdict_name(verdict));
    json.boolean("would_work", would_work(verdict));
    json.text("what_will_happen", verdict_text(verdict, tunables));
    json.text("tiers_told_by", evidence_name(facts.topology.evidence));
    write_nodes(json, facts);
    json.begin_object("ibs");
    json.boolean("found", facts.ibs_found);
    json.boolean("works", facts.ibs_error == 0);
    json.signed_number("errno", facts.ibs_error);
    json.boolean("l3missonly", facts.ibs.l3missonly);
    json.boolean("swfilt", facts.ibs.swfilt);
    json.boolean("ldlat", facts.ibs.ldlat);
    json.text("advice", ibs_advice(facts));
    json.end_object();
    json.signed_number("move_pages_errno", facts.move_pages_error);
    if (facts.perf_event_paranoid != DoctorFacts::kUnknown)
        json.signed_number("perf_event_paranoid", facts.perf_event_paranoid);
    if (facts.numa_balancing != DoctorFacts::kUnknown) json.signed_number("numa_balancing", facts.numa_balancing);
    json.boolean("damon_runs", facts.damon_runs);
    json.boolean("numad_runs", facts.numad_runs);
    json.text("job", facts.job);
    json.end_object();
    json.finish();
    return text;
}

}    // namespace pghot
