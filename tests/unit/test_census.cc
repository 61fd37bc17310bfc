// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "runtime/engine/census.h"

namespace pghot {
namespace {

constexpr uintptr_t kBase = 1ull << 40;

Topology machine() {
    Topology topology;
    topology.node_count = 3;
    for (unsigned i = 0; i < 3; ++i)
        topology.nodes[i] = {.online_memory = true, .has_cpus = i < 2, .allowed = true, .lower_tier = i == 2};
    return topology;
}

// A program: which node each page of it is on; pages that are not in the map are not present.
struct Program {
    std::vector<AddressRange> ranges;
    std::map<uintptr_t, int> node_of;
    std::set<uintptr_t> own;
    std::set<uintptr_t> found;
    size_t most_in_a_call = 0;
    size_t questions = 0;
    bool refused = false;

    void map(uintptr_t begin, uint64_t pages, int node, uint64_t targets = 3) {
        ranges.push_back({begin, begin + pages * kPageBytes, targets});
        for (uint64_t i = 0; i < pages && node >= 0; ++i) node_of[begin + i * kPageBytes] = node;
    }
    uint64_t take(Census& census) {
        const auto ask = [&](std::span<void* const> pages, std::span<int> statuses) -> long {
            most_in_a_call = std::max(most_in_a_call, pages.size());
            questions += pages.size();
            for (size_t i = 0; i < pages.size(); ++i) {
                const auto page = node_of.find(reinterpret_cast<uintptr_t>(pages[i]));
                statuses[i] = page == node_of.end() ? -2 : page->second;
            }
            return refused ? -1 : 0;
        };
        const auto skip = [&](uintptr_t page) { return own.contains(page); };
        return census.take(ranges, machine(), ask, skip, [&](uintptr_t page, NodeId) { found.insert(page); });
    }
};

TEST(Census, CountsASmallProgramPageByPage) {
    Program program;
    program.map(kBase, 1000, 0);
    program.map(kBase + (1ull << 30), 500, 2);
    program.map(kBase + (2ull << 30), 300, -1);
    program.map(kBase + (3ull << 30), 700, 1);
    program.map(kBase + (4ull << 30), 900, 0, 0);    // a library: may not move
    Census census;
    EXPECT_EQ(program.take(census), 1700u);
    EXPECT_EQ(program.questions, 2500u);
    EXPECT_LE(program.most_in_a_call, 256u);
    EXPECT_EQ(program.found.size(), 2200u) << "those present";
}

TEST(Census, EstimatesALargeOneWithinOnePercentFromOtherPagesEachTime) {
    Program program;
    for (uint64_t i = 0; i < 100; ++i) program.map(kBase + (i << 30), 1000 + i, static_cast<int>(i % 3));
    uint64_t in_top = 0;
    for (const auto& [page, node] : program.node_of) in_top += node < 2;
    Census census;
    std::set<uintptr_t> all;
    for (int turn = 1; turn <= 5; ++turn) {
        program.found.clear();
        program.questions = 0;
        const auto estimate = static_cast<double>(program.take(census));
        EXPECT_NEAR(estimate, static_cast<double>(in_top), 1050.0);
        EXPECT_LE(program.questions, 4096u);
        all.insert(program.found.begin(), program.found.end());
    }
    EXPECT_GT(all.size(), 3 * 4096u);
}

TEST(Census, OurOwnMemoryIsNotTheProgramsAndARefusalFindsNothing) {
    Program program;
    program.map(kBase, 100, 0);
    for (uint64_t i = 0; i < 10; ++i) program.own.insert(kBase + i * kPageBytes);
    Census census;
    EXPECT_EQ(program.take(census), 90u);
    EXPECT_FALSE(program.found.contains(kBase));
    program.refused = true;
    EXPECT_EQ(program.take(census), 0u);
    program.ranges.clear();
    EXPECT_EQ(program.take(census), 0u);
}

}    // namespace
}    // namespace pghot
