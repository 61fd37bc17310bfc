// SPDX-License-Identifier: Apache-2.0
#include "runtime/report/report.h"

#include <algorithm>
#include <charconv>

#include "runtime/report/identities.h"

namespace pghot {
namespace {

// A text of the statistics page: up to its zero byte, never beyond its array.
template <size_t kBytes>
std::string_view text_in(const char (&storage)[kBytes]) {
    const char* const end = std::find(storage, storage + kBytes, '\0');
    return {storage, static_cast<size_t>(end - storage)};
}

bool threads_have_ended(EngineState state) {
    return state != EngineState::kRunning && state != EngineState::kObserving;
}

void write_source(JsonWriter& json, const Statistics& statistics) {
    json.begin_object("source");
    json.text("name", source_name_of(statistics.source));
    json.text("reason", text_in(statistics.source_reason));
    json.end_object();
}

// Who else may move pages, as it was at the start.
void write_rivals(JsonWriter& json, const Statistics& statistics) {
    json.begin_object("rivals");
    json.boolean("damon_runs", statistics.damon_runs);
    json.signed_number("numa_balancing", statistics.numa_balancing);
    json.end_object();
}

// Who shares the budgets, and how often samples are taken now.
void write_job(JsonWriter& json, const Statistics& statistics) {
    json.begin_object("job");
    json.text("name", text_in(statistics.job));
    json.text("reason", text_in(statistics.job_reason));
    json.number("ranks", statistics.ranks.load(std::memory_order_relaxed));
    json.number("ranks_seen", statistics.ranks_seen.load(std::memory_order_relaxed));
    json.number("period", statistics.period.load(std::memory_order_relaxed));
    json.end_object();
}

void write_tunables(JsonWriter& json, TunableVisitor tunables) {
    json.begin_object("tunables");
    tunables([&](const ReportedTunable& tunable) {
        json.begin_object(tunable.name);
        json.text("value", tunable.value);
        if (!tunable.unit.empty()) json.text("unit", tunable.unit);
        json.boolean("set", tunable.set_by_user);
        json.end_object();
    });
    json.end_object();
}

void write_cpus(JsonWriter& json, const Topology& topology, unsigned node) {
    char text[512];
    size_t used = 0;
    const auto number = [&](unsigned value) {
        used = static_cast<size_t>(std::to_chars(text + used, text + sizeof text, value).ptr - text);
    };
    const auto here = [&](unsigned cpu) { return cpu < topology.cpu_count && topology.node_of_cpu[cpu] == int(node); };
    for (unsigned cpu = 0; cpu < topology.cpu_count && used + 16 < sizeof text; ++cpu) {
        if (!here(cpu)) continue;
        if (used > 0) text[used++] = ',';
        number(cpu);
        if (!here(cpu + 1)) continue;
        while (here(cpu + 1)) ++cpu;
        text[used++] = '-';
        number(cpu);
    }
    json.text("cpus", {text, used});
}

void write_nodes(JsonWriter& json, const Topology& topology) {
    json.begin_array("nodes");
    for (unsigned number = 0; number < topology.node_count; ++number) {
        const Node& node = topology.nodes[number];
        if (!node.online_memory && !node.has_cpus) continue;
        json.begin_object();
        json.number("node", number);
        json.text("tier", node.lower_tier ? "lower" : "top");
        json.text("told_by", evidence_name(topology.evidence));
        json.boolean("allowed", node.allowed);
        json.number("total_bytes", node.total_bytes);
        write_cpus(json, topology, number);
        json.end_object();
    }
    json.end_array();
}

void write_counters(JsonWriter& json, const CounterValues& values) {
    json.begin_object("counters");
    for (unsigned i = 0; i < kCounters; ++i) json.number(kCounterInfo[i].name, values.value[i]);
    json.end_object();
}

void write_identities(JsonWriter& json, const CounterValues& values, bool ended) {
    json.begin_object("identities");
    for (const Identity& identity : kIdentities)
        if (ended || identity.scope == IdentityScope::kAlways) json.boolean(identity.name, identity.holds(values));
    json.end_object();
}

void write_refused_calls(JsonWriter& json, const RefusedCalls& calls, ErrorName error_name) {
    json.begin_array("refused_calls");
    calls.for_each([&](KernelCall call, int error, uint64_t count) {
        json.begin_object();
        json.text("call", kKernelCallNames[static_cast<size_t>(call)]);
        json.text("error", error_name(error));
        json.number("count", count);
        json.end_object();
    });
    json.end_array();
}

void write_seconds(JsonWriter& json, const Statistics& statistics) {
    const uint64_t rows = statistics.rows.load(std::memory_order_acquire);    // pairs with the sampler's release
    json.begin_array("seconds");
    for (uint64_t i = rows > kSecondRows ? rows - kSecondRows : 0; i < rows; ++i) {
        const SecondRow& row = statistics.second[i % kSecondRows];
        json.begin_object();
        json.number("ms", row.time_ns > statistics.started_ns ? (row.time_ns - statistics.started_ns) / kNsPerMs : 0);
        json.number("samples", row.samples);
        json.number("useful", row.useful);
        json.number("extmem", row.extmem);
        json.number("lost", row.lost);
        json.number("promoted_pages", row.promoted_pages);
        json.number("promoted_bytes", row.promoted_bytes);
        json.number("move_calls", row.move_calls);
        json.number("sampler_cpu_ns", row.sampler_cpu_ns);
        json.number("mover_cpu_ns", row.mover_cpu_ns);
        json.number("period", row.period);
        json.end_object();
    }
    json.end_array();
}

}    // namespace

bool write_report(const ReportInput& input, JsonSink sink) {
    const Statistics& statistics = input.statistics;
    const auto state = static_cast<EngineState>(statistics.state.load(std::memory_order_acquire));
    const CounterValues values = values_of(statistics.counters);
    JsonWriter json(sink);
    json.begin_object();
    json.text("version", input.version);
    json.signed_number("pid", statistics.pid);
    json.text("command", text_in(statistics.command));
    json.text("mode", input.mode);
    json.text("state", state_name(state));
    write_source(json, statistics);
    write_rivals(json, statistics);
    write_job(json, statistics);
    write_tunables(json, input.tunables);
    write_nodes(json, input.topology);
    write_counters(json, values);
    write_identities(json, values, threads_have_ended(state));
    write_refused_calls(json, input.refused_calls, input.error_name);
    write_seconds(json, statistics);
    json.end_object();
    return json.finish();
}

std::string_view state_name(EngineState state) {
    switch (state) {
        case EngineState::kNotStarted:
            return "not started";
        case EngineState::kNoLowerTier:
            return "no lower tier";
        case EngineState::kNoSource:
            return "no source";
        case EngineState::kObserving:
            return "observing";
        case EngineState::kRunning:
            return "running";
        case EngineState::kStopped:
            return "stopped";
        case EngineState::kFailed:
            return "failed";
    }
    return "unknown";
}

std::string_view source_name_of(SourceKind source) {
    switch (source) {
        case SourceKind::kNone:
            return "none";
        case SourceKind::kIbs:
            return "ibs";
        case SourceKind::kHintFaults:
            return "hintfaults";
        case SourceKind::kReplay:
            return "replay";
    }
    return "unknown";
}

std::string_view evidence_name(TierEvidence evidence) {
    switch (evidence) {
        case TierEvidence::kNone:
            return "nothing";
        case TierEvidence::kUser:
            return "user";
        case TierEvidence::kMemoryTier:
            return "memory tier";
        case TierEvidence::kHmat:
            return "HMAT latency";
        case TierEvidence::kDistance:
            return "distance";
    }
    return "unknown";
}

}    // namespace pghot
