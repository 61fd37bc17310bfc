// SPDX-License-Identifier: Apache-2.0
// The published micro-benchmark: memory placed on one node, then random accesses to it from another node's CPUs, timed.
// Whoever wants the pages elsewhere (the kernel, a preloaded library) moves them meanwhile.

#include <algorithm>
#include <memory>
#include <vector>

#include <fmt/core.h>

#include "tests/bench/accesses.h"
#include "tests/bench/cpus.h"
#include "tests/bench/options.h"
#include "tests/bench/session.h"

namespace tier_bench {
namespace {

constexpr const char* kName = "tier_bench";
// The hot set of zipf: the hottest pages that together take so much of the accesses.
constexpr double kHotShare = 0.8;

struct Group {
    int cpu_node;
    std::vector<int> cpus;    // of cpu_node
    std::span<std::byte> memory;
    std::unique_ptr<ZipfTable> zipf;
};

// The groups' parts of the memory, then what is shared.
struct Layout {
    std::vector<Group> groups;
    std::span<std::byte> shared;

    std::vector<std::span<std::byte>> parts() const {
        std::vector<std::span<std::byte>> parts;
        for (const Group& group : groups) parts.push_back(group.memory);
        if (!shared.empty()) parts.push_back(shared);
        return parts;
    }
};

size_t page_bytes(const Options& options) { return options.pages == PageSize::kHuge ? kHugePageBytes : kPageBytes; }

// A group's part, in whole pages.
size_t part_bytes(const Options& options) {
    return options.bytes / static_cast<size_t>(options.groups) / page_bytes(options) * page_bytes(options);
}

Layout lay_out(const Options& options, std::span<std::byte> memory) {
    Layout layout;
    const size_t part = part_bytes(options);
    for (int i = 0; i < options.groups; ++i) {
        const int node = options.groups == 1 ? options.cpu_node : i;
        Group group{node, cpus_of(node), memory.subspan(static_cast<size_t>(i) * part, part), nullptr};
        if (options.pattern == Pattern::kZipf)
            group.zipf = std::make_unique<ZipfTable>(part / kPageBytes, options.zipf_exponent, options.zipf_order,
                                                     options.common.seed + static_cast<uint64_t>(i));
        layout.groups.push_back(std::move(group));
    }
    layout.shared = memory.subspan(static_cast<size_t>(options.groups) * part);
    return layout;
}

bool place(const Options& options, const Layout& layout) {
    for (const Group& group : layout.groups)
        if (!place_memory(group.memory, options.place, group.cpu_node)) return false;
    return layout.shared.empty() || place_memory(layout.shared, options.place, layout.groups[0].cpu_node);
}

std::vector<void*> hot_pages(const Group& group) {
    if (group.zipf == nullptr) return some_pages(group.memory, PlacementWatch::kPagesOfSet);
    const std::vector<size_t> hottest = group.zipf->hottest(kHotShare);
    std::vector<void*> pages;
    const size_t wanted = std::min(hottest.size(), PlacementWatch::kPagesOfSet);
    for (size_t i = 0; i < wanted; ++i)
        pages.push_back(&group.memory[hottest[hottest.size() * i / wanted] * kPageBytes]);
    return pages;
}

std::vector<WatchedSet> watched_sets(const Layout& layout) {
    std::vector<WatchedSet> sets;
    uint64_t nodes = 0;
    for (const Group& group : layout.groups) {
        const std::string name = layout.groups.size() == 1 ? "hot" : fmt::format("private {}", sets.size());
        sets.push_back({name, hot_pages(group), uint64_t{1} << group.cpu_node});
        nodes |= uint64_t{1} << group.cpu_node;
    }
    if (!layout.shared.empty())
        sets.push_back({"shared", some_pages(layout.shared, PlacementWatch::kPagesOfSet), nodes});
    return sets;
}

std::vector<int> cpus_of_threads(const Options& options, const Layout& layout) {
    std::vector<int> cpus;
    const size_t groups = layout.groups.size();
    for (size_t i = 0; i < static_cast<size_t>(options.threads); ++i) {
        const Group& group = layout.groups[i % groups];
        cpus.push_back(group.cpus[i / groups % group.cpus.size()]);
    }
    return cpus;
}

// Runs until the count is done, or with `seconds` until the time is over (looked at every kBatch accesses).
uint64_t run_accesses(AccessLoop& loop, uint64_t accesses, double seconds) {
    constexpr uint64_t kBatch = 4096;
    if (seconds <= 0) {
        loop.run(accesses);
        return accesses;
    }
    const Clock::time_point start = Clock::now();
    uint64_t done = 0;
    while (Clock::now() - start < std::chrono::duration<double>(seconds)) {
        loop.run(kBatch);
        done += kBatch;
    }
    return done;
}

struct Work {
    uint64_t accesses = 0;
    uint64_t checksum = 0;
};

Work run_threads(const Options& options, const Layout& layout, Session& session) {
    std::vector<Work> works(session.threads());
    const uint64_t share = options.accesses / works.size(), rest = options.accesses % works.size();
    const double shared = layout.shared.empty() ? 0 : options.shared_percent / 100.0;
    const auto work = [&](size_t i) {
        const Group& group = layout.groups[i % layout.groups.size()];
        AccessLoop loop({group.memory, group.zipf.get()}, {layout.shared}, shared, options.common.seed * 1000 + i);
        works[i].accesses = run_accesses(loop, share + (i < rest ? 1 : 0), options.seconds);
        works[i].checksum = loop.checksum();
    };
    std::vector<size_t> sets(layout.parts().size());
    for (size_t i = 0; i < sets.size(); ++i) sets[i] = i;
    session.run(name_of(options.pattern), work, sets);
    Work sum;
    for (const Work& each : works) {
        sum.accesses += each.accesses;
        sum.checksum += each.checksum;
    }
    return sum;
}

JsonObject result_of(const Options& options, const Layout& layout, const Work& work, Session& session) {
    const JsonObject measured = session.finish();
    JsonObject json;
    json.add("workload", name_of(options.pattern)).add("threads", options.threads);
    size_t part = 0;
    json.raw("groups", json_array(layout.groups, [&](const Group& group) {
                 JsonObject each;
                 each.add("cpu_node", group.cpu_node).add("pages_per_node", pages_per_node(session.nodes()[part++]));
                 return each.text();
             }));
    json.add("memory_node", name_of(options.place)).add("memory", name_of(options.memory));
    json.add("huge_pages", options.pages == PageSize::kHuge ? 1 : 0);
    json.add("bytes", options.bytes).add("shared_bytes", layout.shared.size());
    json.add("zipf_exponent", options.zipf_exponent).add("zipf_order", name_of(options.zipf_order));
    json.add("seed", options.common.seed).add("accesses", work.accesses).add("checksum", work.checksum);
    return json.joined(measured);
}

int run(const Options& options) {
    const size_t shared = options.shared_bytes / page_bytes(options) * page_bytes(options);
    Memory memory(options.memory, options.pages, static_cast<size_t>(options.groups) * part_bytes(options) + shared);
    if (!memory.valid()) return fail_with_errno(kName, fmt::format("{} bytes", options.bytes + shared));
    const Layout layout = lay_out(options, memory.bytes());
    for (const Group& group : layout.groups)
        if (group.cpus.empty()) return fail(kName, fmt::format("node {} has no CPU", group.cpu_node));
    if (!place(options, layout))
        return fail_with_errno(kName, fmt::format("memory on node {}", name_of(options.place)));
    Session session(options.common, cpus_of_threads(options, layout), layout.parts(), watched_sets(layout));
    if (!session.ready()) return fail(kName, "a thread could not be pinned to its node's CPU");
    const Work work = run_threads(options, layout, session);
    return print_result(options.common, result_of(options, layout, work, session));
}

}    // namespace
}    // namespace tier_bench

int main(int argc, char** argv) {
    tier_bench::Options options;
    tier_bench::Arguments arguments(tier_bench::kName, "random accesses to memory that was placed on one NUMA node");
    declare(arguments, options);
    return tier_bench::run_program(tier_bench::kName, arguments, argc, argv, [&] { return tier_bench::run(options); });
}
