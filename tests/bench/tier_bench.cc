// SPDX-License-Identifier: Apache-2.0
// The published micro-benchmark: memory placed on one node, then random accesses to it from another node's CPUs, timed.
// Whoever wants the pages elsewhere (the kernel, a preloaded library) moves them meanwhile.

#include <numa.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <latch>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include <fmt/core.h>

#include "tests/bench/accesses.h"
#include "tests/bench/counters.h"
#include "tests/bench/memory.h"
#include "tests/bench/modelled_time.h"
#include "tests/bench/options.h"

namespace tier_bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Group {
    int cpu_node;
    std::vector<int> cpus;    // of cpu_node
    std::span<std::byte> memory;
    std::unique_ptr<ZipfTable> zipf;
};

struct Result {
    double wall_us = 0;
    uint64_t accesses = 0;
    uint64_t checksum = 0;
    std::set<int> cpus;
    Counters phase;
};

std::vector<int> cpus_of(int node) {
    std::vector<int> cpus;
    bitmask* mask = numa_allocate_cpumask();
    if (numa_node_to_cpus(node, mask) == 0)
        for (unsigned cpu = 0; cpu < mask->size; ++cpu)
            if (numa_bitmask_isbitset(mask, cpu)) cpus.push_back(static_cast<int>(cpu));
    numa_free_cpumask(mask);
    return cpus;
}

std::vector<Group> make_groups(const Options& options, std::span<std::byte> memory) {
    std::vector<Group> groups;
    const size_t share = memory.size() / static_cast<size_t>(options.groups) / kPageBytes * kPageBytes;
    for (int i = 0; i < options.groups; ++i) {
        const int node = options.groups == 1 ? options.cpu_node : i;
        Group group{node, cpus_of(node), memory.subspan(static_cast<size_t>(i) * share, share), nullptr};
        if (options.pattern == Pattern::kZipf)
            group.zipf = std::make_unique<ZipfTable>(share / kPageBytes, options.zipf_exponent, options.zipf_order,
                                                     options.seed + static_cast<uint64_t>(i));
        groups.push_back(std::move(group));
    }
    return groups;
}

bool pin_to(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

// Runs until the count is done, or with --seconds until the time is over (looked at every kBatch accesses).
uint64_t run_accesses(AccessLoop& loop, uint64_t accesses, double seconds, Clock::time_point start) {
    constexpr uint64_t kBatch = 4096;
    if (seconds <= 0) {
        loop.run(accesses);
        return accesses;
    }
    uint64_t done = 0;
    while (Clock::now() - start < std::chrono::duration<double>(seconds)) {
        loop.run(kBatch);
        done += kBatch;
    }
    return done;
}

Result run_threads(const Options& options, const std::vector<Group>& groups) {
    struct Worker {
        std::thread thread;
        uint64_t accesses = 0, checksum = 0;
        Clock::time_point end;
    };
    std::vector<Worker> workers(static_cast<size_t>(options.threads));
    std::latch pinned(options.threads), go(1);
    Clock::time_point start;
    Result result;
    const uint64_t share = options.accesses / workers.size(), rest = options.accesses % workers.size();
    for (size_t i = 0; i < workers.size(); ++i) {
        const Group& group = groups[i % groups.size()];
        const int cpu = group.cpus[i / groups.size() % group.cpus.size()];
        result.cpus.insert(cpu);
        workers[i].thread =
            std::thread([&, i, cpu, worker = &workers[i], memory = group.memory, zipf = group.zipf.get()] {
                const bool on_cpu = pin_to(cpu);
                AccessLoop loop(memory, zipf, options.seed * 1000 + i);
                pinned.count_down();
                go.wait();
                if (on_cpu) worker->accesses = run_accesses(loop, share + (i < rest ? 1 : 0), options.seconds, start);
                worker->end = Clock::now();
                worker->checksum = loop.checksum();
            });
    }
    pinned.wait();
    const Counters before = read_counters();
    start = Clock::now();
    go.count_down();
    Clock::time_point end = start;
    for (Worker& worker : workers) {
        worker.thread.join();
        end = std::max(end, worker.end);
        result.accesses += worker.accesses;
        result.checksum += worker.checksum;
    }
    result.phase = read_counters() - before;
    result.wall_us = std::chrono::duration<double, std::micro>(end - start).count();
    return result;
}

std::string as_json(const Counts& counts) {
    std::string json = "{";
    for (const auto& [name, value] : counts)
        json += fmt::format("{}\"{}\":{}", json.size() > 1 ? "," : "", name, value);
    return json + "}";
}

std::string as_json(const std::map<int, uint64_t>& pages) {
    std::string json = "{";
    for (const auto& [node, count] : pages) json += fmt::format("{}\"{}\":{}", json.size() > 1 ? "," : "", node, count);
    return json + "}";
}

std::string as_json(const std::optional<ModelledTime>& time) {
    if (!time) return "null";
    return fmt::format(
        "{{\"slowest_cpu\":{},\"instructions_us\":{:.0f},\"memory_us\":{:.0f},\"samples_us\":{:.0f},\"page_moves_us\":{"
        ":.0f},"
        "\"moving_calls_us\":{:.0f},\"hint_faults_us\":{:.0f},\"pte_updates_us\":{:.0f}}}",
        time->slowest_cpu, time->instructions_us, time->memory_us, time->samples_us, time->page_moves_us,
        time->moving_calls_us, time->hint_faults_us, time->pte_updates_us);
}

std::string as_json(const std::optional<RigCounters>& rig) {
    if (!rig) return "null";
    std::string cpus;
    for (const auto& [cpu, counts] : rig->cpus) {
        Counts without_node = counts;
        without_node.erase("node");    // a place, not a count: its difference says nothing
        cpus += fmt::format("{}\"{}\":{}", cpus.empty() ? "" : ",", cpu, as_json(without_node));
    }
    return fmt::format("{{\"machine\":{},\"cpus\":{{{}}}}}", as_json(rig->machine), cpus);
}

std::string groups_as_json(const std::vector<Group>& groups) {
    std::string json;
    for (const Group& group : groups)
        json += fmt::format("{}{{\"cpu_node\":{},\"pages_per_node\":{}}}", json.empty() ? "" : ",", group.cpu_node,
                            as_json(pages_per_node(group.memory)));
    return "[" + json + "]";
}

void print_result(const Options& options, const Result& result, const Memory& memory,
                  const std::vector<Group>& groups) {
    const std::optional<ModelledTime> time = modelled_time(result.phase, result.cpus);
    fmt::print(
        "{{\"threads\":{},\"groups\":{},\"memory_node\":{},\"memory\":\"{}\",\"bytes\":{},\"pattern\":\"{}\","
        "\"zipf_exponent\":{},\"zipf_order\":\"{}\",\"seed\":{},\"accesses\":{},\"checksum\":{},"
        "\"wall_us\":{:.0f},\"modelled_us\":{},\"modelled\":{},\"pages_per_node\":{},\"vmstat\":{},\"rig\":{}}}\n",
        options.threads, groups_as_json(groups), options.memory_node, name_of(options.memory), memory.bytes().size(),
        name_of(options.pattern), options.zipf_exponent, name_of(options.zipf_order), options.seed, result.accesses,
        result.checksum, result.wall_us, time ? fmt::format("{:.0f}", time->total_us()) : "null", as_json(time),
        as_json(pages_per_node(memory.bytes())), as_json(result.phase.vmstat), as_json(result.phase.rig));
}

int run(const Options& options) {
    Memory memory(options.memory, options.bytes);
    if (!memory.valid() || !memory.place_on(options.memory_node)) {
        fmt::print(stderr, "tier_bench: {} bytes on node {}: {}\n", options.bytes, options.memory_node,
                   std::strerror(errno));
        return 1;
    }
    const std::vector<Group> groups = make_groups(options, memory.bytes());
    for (const Group& group : groups) {
        if (!group.cpus.empty()) continue;
        fmt::print(stderr, "tier_bench: node {} has no CPU\n", group.cpu_node);
        return 1;
    }
    const Result result = run_threads(options, groups);
    if (result.accesses < options.accesses && options.seconds <= 0) {
        fmt::print(stderr, "tier_bench: a thread could not be pinned to its node's CPU\n");
        return 1;
    }
    print_result(options, result, memory, groups);
    return 0;
}

}    // namespace
}    // namespace tier_bench

int main(int argc, char** argv) try {
    tier_bench::Options options;
    switch (tier_bench::parse_options(argc, argv, options)) {
        case tier_bench::Parsed::kDone:
            return 0;
        case tier_bench::Parsed::kUsageError:
            return 2;
        case tier_bench::Parsed::kRun:
            return tier_bench::run(options);
    }
    return 2;
} catch (const std::exception& error) {    // no memory, no more threads
    std::fprintf(stderr, "tier_bench: %s\n", error.what());
    return 1;
}
