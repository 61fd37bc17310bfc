// SPDX-License-Identifier: Apache-2.0
// Memory in DRAM, on the wrong node or used by both (PGHOT_MISPLACED).
#include <gtest/gtest.h>

#include "tests/sim/simulator.h"

namespace pghot::sim {
namespace {

constexpr uint64_t kHalf = 8192;    // pages: 32 MiB
constexpr PolicyParameters kPutRight{.freq_threshold = 1, .misplaced = true};

// All memory is on node 0.
struct AllOnNode0 : Simulator {
    AllOnNode0(const PolicyParameters& policy, uint64_t pages, uint64_t seed = 1)
        : Simulator(published_machine(4), {.policy = policy, .pages = pages, .seed = seed}) {
        place(0, pages, 0);
    }
};

TEST(Rehome, TheHalfThatTheOtherNodeUsesGoesThereAndTheRestStays) {
    AllOnNode0 sim(kPutRight, 2 * kHalf);
    for (uint16_t cpu = 0; cpu < 4; ++cpu) sim.add({.cpu = cpu, .page = uniform(cpu % 2 * kHalf, kHalf)});
    sim.run_ms(60000);    // stores tell no place: all is asked about once, and rests
    EXPECT_EQ(sim.share_on(0, 0, kHalf), 1.0);
    EXPECT_GE(sim.share_on(1, kHalf, kHalf), 0.99);
    EXPECT_EQ(sim.most_moves_of_a_page(), 1u);
}

TEST(Rehome, NothingMovesUnlessItIsAskedFor) {
    AllOnNode0 sim({.freq_threshold = 1}, kHalf);
    sim.add({.cpu = 1, .page = uniform(0, kHalf)});
    sim.run_ms(20000);
    EXPECT_EQ(sim.pages_moved(), 0u);
}

// Five minutes of even use by both nodes.
TEST(Rehome, SharedPagesStayWhereTheyAre) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
        AllOnNode0 sim(kPutRight, kHalf, seed);
        for (uint16_t cpu = 0; cpu < 4; ++cpu) sim.add({.cpu = cpu, .page = uniform(0, kHalf)});
        sim.run_ms(300000);
        EXPECT_EQ(sim.pages_moved(), 0u) << "seed " << seed;
    }
}

// Three seconds of one node, three of the other, and so on.
TEST(Rehome, MemoryThatNodesUseInTurnStays) {
    AllOnNode0 sim(kPutRight, kHalf);
    for (uint16_t turn = 0; turn < 60; ++turn) {
        sim.remove_threads();
        sim.add({.cpu = static_cast<uint16_t>(turn % 2), .samples_per_second = 4000, .page = uniform(0, kHalf)});
        sim.run_ms(3000);
    }
    EXPECT_EQ(sim.pages_moved(), 0u);
}

// Nine accesses in ten from node 1: that is where they belong, and the tenth never calls them back.
TEST(Rehome, PagesThatOneNodeUsesNearlyAloneMoveOnce) {
    AllOnNode0 sim(kPutRight, kHalf);
    sim.add({.cpu = 0, .samples_per_second = 500, .page = uniform(0, kHalf)});
    sim.add({.cpu = 1, .samples_per_second = 4500, .page = uniform(0, kHalf)});
    sim.run_ms(300000);
    EXPECT_GE(sim.share_on(1, 0, kHalf), 0.99);
    EXPECT_EQ(sim.most_moves_of_a_page(), 1u);
}

// In every chunk each page is used by one node only, in turn.
TEST(Rehome, PagesThatAlternateInAChunkArePutRightOneByOne) {
    AllOnNode0 sim(kPutRight, 1024);
    for (uint16_t cpu = 0; cpu < 2; ++cpu)
        sim.add({.cpu = cpu, .samples_per_second = 4000, .page = [cpu](Random& random) {
                     return 2 * (random() % 512) + cpu;
                 }});
    sim.run_ms(120000);
    uint64_t right = 0;
    for (uint64_t page = 0; page < 1024; ++page) right += sim.pages_on(static_cast<int16_t>(page % 2), page, 1);
    EXPECT_GE(right, 1024u * 95 / 100);
    EXPECT_EQ(sim.most_moves_of_a_page(), 1u);
}

// Threads change nodes every minute: memory follows, once a minute.
TEST(Rehome, MemoryFollowsThreadsThatMoved) {
    AllOnNode0 sim(kPutRight, kHalf);
    for (int minute = 0; minute < 4; ++minute) {
        sim.remove_threads();
        const auto cpu = static_cast<uint16_t>((minute + 1) % 2);
        sim.add({.cpu = cpu, .samples_per_second = 4000, .page = uniform(0, kHalf)});
        sim.run_ms(60000);
        EXPECT_GE(sim.share_on(static_cast<int16_t>(cpu), 0, kHalf), 0.99) << "minute " << minute;
        EXPECT_LE(sim.most_moves_of_a_page(), static_cast<unsigned>(minute + 1));
    }
}

// What was promoted a moment ago to the node that used it then is not moved on at once.
TEST(Rehome, AMovedChunkRestsForSomeWindows) {
    Simulator sim(published_machine(2), {.policy = kPutRight, .pages = kHalf});
    sim.add({.cpu = 0, .samples_per_second = 4000, .page = uniform(0, kHalf)});
    sim.run_ms(10000);
    ASSERT_GE(sim.share_on(0, 0, kHalf), 0.99);
    sim.remove_threads();
    sim.add({.cpu = 1, .samples_per_second = 4000, .page = uniform(0, kHalf)});
    const uint64_t windows_ms = kRestWindows * 3000;
    sim.run_ms(windows_ms / 2);
    EXPECT_EQ(sim.pages_on(1, 0, kHalf), 0u);
    sim.run_ms(windows_ms);
    EXPECT_GE(sim.share_on(1, 0, kHalf), 0.75) << "but for pages whose own samples say node 0 still";
    sim.run_ms(2 * windows_ms);
    EXPECT_GE(sim.share_on(1, 0, kHalf), 0.99);
}

}    // namespace
}    // namespace pghot::sim
