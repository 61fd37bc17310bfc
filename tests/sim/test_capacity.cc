// SPDX-License-Identifier: Apache-2.0
// Programs larger than the room that DRAM has for them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "tests/sim/simulator.h"

namespace pghot::sim {
namespace {

constexpr uint64_t kPages = 98304;    // 384 MiB
constexpr uint64_t kRoom = 40000;     // on node 0; node 1 is full
constexpr double kSamplesPerSecond = 2115;

// Costs of current machines, and a sample every 2048 accesses.
Settings settings(uint64_t room = kRoom) {
    return {
        .policy = {.freq_threshold = 1}, .pages = kPages, .call_ns = 100000, .page_ns = 2000, .node_pages = {room, 1}};
}
void print(const char* what, const Simulator& sim, double share) {
    std::printf(
        "%s: %4.0f s, %.3f of the accesses served by DRAM, %llu pages moved, %llu of them down, %llu up again\n", what,
        static_cast<double>(sim.now().ns) / kNsPerSecond - 10, share,
        static_cast<unsigned long long>(sim.pages_moved()), static_cast<unsigned long long>(sim.pages_demoted()),
        static_cast<unsigned long long>(sim.pages_promoted_again()));
}

// Scattered zipf. The hottest pages are in the processor's caches and never sampled.
class ZipfProgram {
public:
    explicit ZipfProgram(uint64_t seed) : order_(kPages), weight_(kPages) {
        Random random(seed);
        std::iota(order_.begin(), order_.end(), uint64_t{0});
        std::shuffle(order_.begin(), order_.end(), random);
        for (size_t rank = kCached; rank < kPages; ++rank)
            weight_[order_[rank]] = std::pow(static_cast<double>(rank + 1), -0.99);
        total_ = std::accumulate(weight_.begin(), weight_.end(), 0.0);
        draw_ = zipf(order_, 0.99);
    }
    uint64_t operator()(Random& random) const {
        uint64_t page = 0;
        do page = draw_(random);
        while (weight_[page] == 0);
        return page;
    }
    // Of the accesses that miss the caches.
    double share_of_dram(const Simulator& sim) const {
        double sum = 0;
        for (uint64_t page = 0; page < kPages; ++page) sum += sim.pages_on(2, page, 1) == 0 ? weight_[page] : 0;
        return sum / total_;
    }

private:
    static constexpr size_t kCached = 500;
    std::vector<uint64_t> order_;
    std::vector<double> weight_;
    double total_ = 0;
    std::function<uint64_t(Random&)> draw_;
};

class OverCapacity : public testing::TestWithParam<uint64_t> {};    // seeds

TEST_P(OverCapacity, ZipfFillsDramAndThenExchangesWhatIsWorthIt) {
    const ZipfProgram program(GetParam());
    Settings with_seed = settings();
    with_seed.seed = GetParam();
    Simulator sim(published_machine(2), with_seed);
    sim.add(
        {.cpu = 0, .samples_per_second = kSamplesPerSecond, .page = [&](Random& random) { return program(random); }});
    double shares[3];
    for (int i = 0; const uint64_t ms : {2000u, 8000u, 30000u}) {
        sim.run_ms(ms);
        print("zipf", sim, shares[i] = program.share_of_dram(sim));
        ++i;
    }
    EXPECT_GT(shares[0], 0.43) << "filled at once, chunk by chunk";
    EXPECT_GT(shares[1], 0.60);
    EXPECT_GT(shares[2], 0.70);
    EXPECT_LE(sim.pages_on(0, 0, kPages), kRoom);
    EXPECT_LT(sim.pages_promoted_again(), sim.pages_moved() / 20) << "to and fro";
    EXPECT_LT(sim.policy().ledger().ping_pong, sim.pages_moved() / 20);
}
INSTANTIATE_TEST_SUITE_P(Seeds, OverCapacity, testing::Values(1, 2, 3));

TEST(OverCapacity, NothingIsExchangedUnderUniformAccess) {
    Simulator sim(published_machine(2), settings());
    sim.add({.cpu = 0, .samples_per_second = kSamplesPerSecond, .page = uniform(0, kPages)});
    sim.run_ms(60000);
    print("uniform", sim, sim.share_on(0, 0, kPages));
    EXPECT_GT(sim.pages_on(0, 0, kPages), kRoom * 97 / 100);
    EXPECT_LT(sim.pages_demoted(), kRoom / 20);
}

TEST(OverCapacity, AHotSetThatMovesIsFollowed) {
    Simulator sim(published_machine(2), settings());
    uint64_t first = 0;
    constexpr uint64_t kHot = 30000;
    sim.add({.cpu = 0, .samples_per_second = 2 * kSamplesPerSecond, .page = [&](Random& random) {
                 return random() % 20 != 0 ? first + random() % kHot : random() % kPages;
             }});
    for (int phase = 0; phase < 3; ++phase) {
        first = static_cast<uint64_t>(phase) * kHot;
        sim.run_ms(10000);
        const double home = sim.share_on(0, first, kHot);
        print("hot set", sim, home);
        EXPECT_GT(home, 0.9) << phase;
    }
}

TEST(OverCapacity, OneSweepExchangesNothing) {
    Simulator sim(published_machine(2), settings());
    sim.add({.cpu = 0, .samples_per_second = kSamplesPerSecond, .page = uniform(0, kRoom)});
    sim.run_ms(5000);
    const uint64_t moved = sim.pages_moved();
    ASSERT_GT(sim.pages_on(0, 0, kRoom), kRoom * 95 / 100);
    sim.add({.cpu = 0, .samples_per_second = 10 * kSamplesPerSecond, .page = sweep(kRoom, kPages - kRoom, 0.5)});
    sim.run_ms(4000);    // 42,000 of its 58,304 pages
    print("sweep", sim, sim.share_on(0, 0, kRoom));
    EXPECT_LT(sim.pages_moved() - moved, kRoom / 50);
}

TEST(OverCapacity, WithoutDemotionPagesOnlyFillTheRoom) {
    Settings no_demotion = settings();
    no_demotion.policy.demote = false;
    const ZipfProgram program(1);
    Simulator sim(published_machine(2), no_demotion);
    sim.add(
        {.cpu = 0, .samples_per_second = kSamplesPerSecond, .page = [&](Random& random) { return program(random); }});
    sim.run_ms(10000);
    EXPECT_EQ(sim.pages_demoted(), 0u);
    EXPECT_GT(sim.pages_on(0, 0, kPages), kRoom * 98 / 100);
}

TEST(DramLimit, IsKeptFromTheFirstSecondOn) {
    Settings limited = settings(0);
    limited.node_pages = {};
    limited.policy.dram_limit_bytes = kRoom * kPageBytes;
    const ZipfProgram program(1);
    Simulator sim(published_machine(2), limited);
    sim.policy().capacity().found(0);
    sim.add(
        {.cpu = 0, .samples_per_second = kSamplesPerSecond, .page = [&](Random& random) { return program(random); }});
    for (int second = 0; second < 20; ++second) {
        sim.run_ms(1000);
        EXPECT_LE(kPages - sim.pages_on(2, 0, kPages), kRoom) << second;
    }
    print("limit", sim, program.share_of_dram(sim));
    EXPECT_GT(kPages - sim.pages_on(2, 0, kPages), kRoom * 95 / 100);
    EXPECT_GT(program.share_of_dram(sim), 0.6);
}

TEST(DramLimit, WhatIsBeyondItGoesDownColdestFirst) {
    Settings limited = settings(0);
    limited.node_pages = {};
    limited.policy.dram_limit_bytes = kRoom * kPageBytes;
    Simulator sim(published_machine(2), limited);
    sim.place(0, 2 * kRoom, 0);
    constexpr uint64_t kHot = kRoom / 2;
    sim.add({.cpu = 0, .samples_per_second = kSamplesPerSecond, .page = [](Random& random) {
                 return random() % 10 != 0 ? kRoom + random() % kHot : random() % kPages;
             }});
    sim.run_ms(3000);
    sim.policy().capacity().found(2 * kRoom);
    sim.run_ms(5000);
    print("beyond the limit", sim, sim.share_on(0, kRoom, kHot));
    EXPECT_LE(sim.pages_on(0, 0, kPages), kRoom + 512);
    EXPECT_GT(sim.share_on(0, kRoom, kHot), 0.95);
}

TEST(FullMachine, RoomThatOthersTakeIsNotMadeForEver) {
    Settings others = settings();
    Simulator sim(published_machine(2), others);
    const ZipfProgram program(1);
    sim.add(
        {.cpu = 0, .samples_per_second = kSamplesPerSecond, .page = [&](Random& random) { return program(random); }});
    sim.run_ms(3000);
    const uint64_t before = sim.pages_on(0, 0, kPages);
    constexpr unsigned kSeconds = 20;
    for (unsigned second = 0; second < kSeconds; ++second) {
        sim.take_room(0);    // another program has it before we do
        sim.run_ms(1000);
    }
    print("others", sim, program.share_of_dram(sim));
    EXPECT_GT(sim.pages_on(0, 0, kPages), before - 2 * 4096 - kSeconds * 64)
        << "two large calls, as much that was on its way up again, and 64 pages a second";
}

}    // namespace
}    // namespace pghot::sim
