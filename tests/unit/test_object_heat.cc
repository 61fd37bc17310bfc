// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "runtime/policy/economy_meter.h"
#include "tests/unit/test_policy_story.h"

namespace pghot::test {
namespace {

constexpr uint64_t kFirst = Story::kBase / kChunkBytes;
constexpr PolicyParameters kTwoSamples{.freq_window_ms = 3000, .freq_threshold = 2};

// Objects of the story's address range, in chunks from its start.
struct Objects final : ObjectSource {
    explicit Objects(std::vector<ObjectRange> some) : ranges(std::move(some)) {}
    ObjectRange object_at(uintptr_t address) const override {
        for (const ObjectRange& range : ranges)
            if (range.holds(address / kChunkBytes - kFirst))
                return {range.first_chunk + kFirst, range.end_chunk + kFirst};
        return {};
    }
    std::vector<ObjectRange> ranges;
};

struct ObjectStory {
    explicit ObjectStory(std::vector<ObjectRange> ranges, const PolicyParameters& parameters = kTwoSamples)
        : objects(std::move(ranges)), story(parameters, published_machine(), 1024, &objects) {}

    // `count` samples of uniform access to chunks [first, end), one in `gap_ms`.
    void uniform(uint64_t first, uint64_t end, unsigned count, uint64_t gap_ms = 1, int16_t node = 0) {
        for (unsigned i = 0; i < count; ++i) {
            story.sample(first * kPagesPerChunk + random() % ((end - first) * kPagesPerChunk), node);
            story.wait_ms(gap_ms);
        }
    }
    // Chunks that are planned as a whole, perhaps in several runs.
    uint64_t planned_chunks() {
        std::set<uintptr_t> chunks;
        for (const Move& move : story.plan(1024))
            if (move.rule == MoveRule::kChunk) chunks.insert(chunk_of(move.address));
        return chunks.size();
    }
    Objects objects;
    std::mt19937_64 random{1};
    Story story;
};

TEST(ObjectRule, OneSampleAChunkOnAverageBringsMostOfAnEvenlyUsedObjectHome) {
    ObjectStory with({{0, 256}}, {.freq_threshold = 1}), without({}, {.freq_threshold = 1});
    with.uniform(0, 256, 256);
    without.uniform(0, 256, 256);
    EXPECT_GT(with.planned_chunks(), 140u) << "162 of 256 chunks have a sample";
    EXPECT_LE(without.planned_chunks(), 1u);
}

TEST(ObjectRule, ThresholdSamplesAreAskedOfEachChunk) {
    ObjectStory with({{0, 256}});
    with.uniform(0, 256, 512);
    const uint64_t planned = with.planned_chunks();
    EXPECT_GT(planned, 130u) << "152 of 256 chunks have two samples";
    EXPECT_LT(planned, 170u);
}

TEST(ObjectRule, AnObjectUsedInOneCornerVouchesForNothing) {
    ObjectStory with({{0, 256}}, {.freq_threshold = 1});
    with.uniform(0, 32, 64);
    with.uniform(0, 256, 16);
    EXPECT_LE(with.planned_chunks(), 1u);
}

TEST(ObjectRule, ANeighbourThatIsNoPartOfTheObjectIsNotVouchedFor) {
    ObjectStory with({{0, 128}}, {.freq_threshold = 1});
    with.uniform(0, 128, 256);
    with.uniform(200, 256, 20);
    for (const Move& move : with.story.plan(1024)) EXPECT_LT(move.address / kChunkBytes - kFirst, 128u);
}

TEST(ObjectRule, OneSweepOverAnObjectMovesNothingOfIt) {
    ObjectStory with({{0, 64}}, {.freq_threshold = 1});
    for (uint64_t page = 0; page < 64 * kPagesPerChunk; page += 64) {
        with.story.sample(page);
        with.story.wait_ms(2);
        if (page % 4096 != 0) continue;
        EXPECT_EQ(with.planned_chunks(), 0u) << page;
    }
    EXPECT_EQ(with.planned_chunks(), 0u);
}

TEST(ObjectRule, SweepAfterSweepDoes) {
    ObjectStory with({{0, 64}}, {.freq_threshold = 1});
    uint64_t chunks = 0;
    for (uint64_t sweep = 0; sweep < 4; ++sweep)
        for (uint64_t page = sweep * 3; page < 64 * kPagesPerChunk; page += 256) {
            with.story.sample(page);
            with.story.wait_ms(7);
            if (page / 256 % 32 == 0) chunks += with.planned_chunks();
        }
    EXPECT_EQ(chunks, 64u);
}

TEST(ObjectRule, TwoNodesThatUseAnObjectAlikeGetNoVoucher) {
    ObjectStory with({{0, 256}}, {.freq_threshold = 1});
    for (int i = 0; i < 128; ++i) with.uniform(0, 256, 1, 1, static_cast<int16_t>(i % 2));
    EXPECT_LE(with.planned_chunks(), 1u);
}

TEST(ObjectRule, AGrownObjectIsKnownByItsNewSize) {
    ObjectStory with({{0, 64}}, {.freq_threshold = 1});
    with.uniform(0, 64, 128);
    EXPECT_GT(with.planned_chunks(), 50u);
    with.objects.ranges = {{0, 128}};
    with.uniform(0, 128, 256);
    EXPECT_GT(with.planned_chunks(), 50u);
}

TEST(ObjectRule, MoreObjectsThanPlacesForgetsTheColdest) {
    std::vector<ObjectRange> ranges;
    for (uint64_t i = 0; i < 300; ++i) ranges.push_back({i * 16, i * 16 + 16});
    Objects objects(ranges);
    Story story({.freq_threshold = 1}, published_machine(), 5000, &objects);
    for (uint64_t i = 0; i < 300; ++i) {
        story.sample(i * 16 * kPagesPerChunk);
        story.wait_ms(16);
    }
    std::mt19937_64 random(2);
    for (int i = 0; i < 48; ++i) {    // the last one still works
        story.sample((299 * 16 + random() % 16) * kPagesPerChunk + random() % kPagesPerChunk);
        story.wait_ms(2);
    }
    uint64_t chunks = 0;
    for (const Move& move : story.plan(1024)) chunks += move.rule == MoveRule::kChunk;
    EXPECT_GE(chunks, 12u);
}

// ---- what a move costs and saves

TEST(Payback, AMoveThatDoesNotPayWithinAMinuteWaits) {
    Story story({.freq_threshold = 1});
    // A chunk costs 512 ms; a sample saves 10 ms. Eight samples in 0.16 s are 500 ms a second: pays in 1 s.
    story.policy().set_economy({.page_ns = 1000000, .sample_gain_ns = 10000000, .gain_known = true});
    story.sample_each(0, 8, 64);
    EXPECT_EQ(pages_in(story.plan()), kPagesPerChunk);
    // The same at a 200th of the gain does not.
    story.policy().set_economy({.page_ns = 1000000, .sample_gain_ns = 50000, .gain_known = true});
    story.sample_each(uint64_t{8} * kPagesPerChunk, 8, 64);
    EXPECT_TRUE(story.plan().empty());
}

TEST(Payback, HeatThatLastsPaysInTheEnd) {
    Story story({.freq_threshold = 1});
    // 12.5 samples a second save 6 ms a second; the chunk costs 512 ms.
    story.policy().set_economy({.page_ns = 1000000, .sample_gain_ns = 500000, .gain_known = true});
    int seconds = 0;
    std::mt19937_64 random(3);
    while (story.plan().empty() && seconds < 200) {
        for (int i = 0; i < 12; ++i) {
            story.sample(random() % kPagesPerChunk);
            story.wait_ms(80);
        }
        ++seconds;
    }
    EXPECT_GE(seconds, 61);
    EXPECT_LE(seconds, 110);
}

TEST(Payback, ALowerTierThatIsNotSlowerIsLeftAlone) {
    Story story({.freq_threshold = 1});
    story.policy().set_economy({.page_ns = 1000, .sample_gain_ns = 0, .gain_known = true});
    story.sample_each(0, 20, 25);
    story.sample(5000);
    EXPECT_TRUE(story.plan_all().empty());
    story.policy().set_economy({.page_ns = 1000, .sample_gain_ns = 1000000, .gain_known = true});
    EXPECT_EQ(pages_in(story.plan_all()), kPagesPerChunk);
}

Sample load(ServedBy served_by, uint32_t cycles) { return {.served_by = served_by, .latency_cycles = cycles}; }

TEST(EconomyMeter, NothingIsKnownBeforeThereAreEnoughLoadsAndPages) {
    EconomyMeter meter(10, 50);
    for (int i = 0; i < 15; ++i) meter.note(load(ServedBy::kExtMem, 1500));
    const MoveEconomy economy = meter.read(10000, 1000000, 63);
    EXPECT_FALSE(economy.gain_known);
    EXPECT_EQ(economy.page_ns, 0u);
}

TEST(EconomyMeter, DistancesStandForDramUntilItWasSeen) {
    EconomyMeter meter(10, 50);
    for (int i = 0; i < 16; ++i) meter.note(load(ServedBy::kExtMem, 1500));
    const MoveEconomy guessed = meter.read(10000, 2000000, 100);
    EXPECT_TRUE(guessed.gain_known);
    EXPECT_EQ(guessed.sample_gain_ns, 10000 * (1500 - 300) / 6);
    EXPECT_EQ(guessed.page_ns, 20000u);
    for (int i = 0; i < 16; ++i) meter.note(load(ServedBy::kDram, 900));
    for (int i = 0; i < 16; ++i) meter.note(load(ServedBy::kExtMem, 1500));
    EXPECT_EQ(meter.read(10000, 2000000, 100).sample_gain_ns, 10000 * (1500 - 900) / 6);
}

TEST(EconomyMeter, StoresAndLoadsWithoutALatencyDoNotCount) {
    EconomyMeter meter(10, 50);
    for (int i = 0; i < 100; ++i) {
        meter.note(load(ServedBy::kExtMem, 0));
        meter.note(load(ServedBy::kNoLevel, 5000));
        meter.note(load(ServedBy::kCache, 50));
    }
    EXPECT_FALSE(meter.read(10000, 0, 0).gain_known);
}

TEST(EconomyMeter, ALoadedDramMayBeSlowerThanTheLowerTier) {
    EconomyMeter meter(10, 50);
    for (int i = 0; i < 32; ++i) {
        meter.note(load(ServedBy::kDram, 2000));
        meter.note(load(ServedBy::kExtMem, 1500));
    }
    const MoveEconomy economy = meter.read(10000, 0, 0);
    EXPECT_TRUE(economy.gain_known);
    EXPECT_LT(economy.sample_gain_ns, 0);
}

TEST(EconomyMeter, ASpeedThatChangesShowsWithinAFewSeconds) {
    EconomyMeter meter(10, 50);
    uint64_t ns = 0, pages = 0;
    for (int i = 0; i < 5; ++i) meter.read(10000, ns += 2000000, pages += 1000);
    EXPECT_NEAR(static_cast<double>(meter.read(10000, ns, pages).page_ns), 2000, 2) << "rounding";
    for (int i = 0; i < 5; ++i) meter.read(10000, ns += 20000000, pages += 1000);
    EXPECT_GT(meter.read(10000, ns, pages).page_ns, 15000u);
}

}    // namespace
}    // namespace pghot::test
