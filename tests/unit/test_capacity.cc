// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>

#include "runtime/policy/capacity.h"
#include "runtime/policy/heat_histogram.h"
#include "runtime/policy/ledger.h"
#include "tests/unit/test_policy_story.h"

namespace pghot::test {
namespace {

constexpr Tick kSecond = ticks_of_ms(1000);
constexpr NodeId kNode0{0};
constexpr NodeId kNode1{1};

// ---- room

NodeRoom room(NodeId node, uint64_t pages) { return {node, pages * kPageBytes, pages * kPageBytes}; }
MoveOutcome outcome(MoveKind kind, NodeId target, uint32_t pages, PageOutcome what) {
    return {.pages = pages, .outcome = what, .target = target, .kind = kind};
}
void read(Capacity& capacity, NodeRoom reading, Tick now = 0) { capacity.read(std::span(&reading, 1), now); }

TEST(Headroom, IsASixtyFourthOfTheNodeOrTheWatermarkAndABatch) {
    constexpr uint64_t kGiB = 1024 * kMiB;
    EXPECT_EQ(headroom_bytes({.total_bytes = 64 * kGiB}, 0), kGiB);
    EXPECT_EQ(headroom_bytes({.total_bytes = 64 * kGiB}, 4 * kGiB), 4 * kGiB + 8 * kMiB);
    EXPECT_EQ(headroom_bytes({.total_bytes = 512 * kMiB}, 0), 16 * kMiB) << "two batches";
    EXPECT_EQ(floor_bytes({.total_bytes = 64 * kGiB}, 0), 16 * kMiB);
    EXPECT_EQ(floor_bytes({.total_bytes = 64 * kGiB}, 100 * kMiB), 108 * kMiB);
    EXPECT_EQ(floor_bytes({.lower_tier = true, .total_bytes = 64 * kGiB}, 0), 256 * kMiB);
    EXPECT_EQ(floor_bytes({.lower_tier = true, .total_bytes = kGiB}, 0), 8 * kMiB);
}

TEST(Capacity, NodesOfWhichNothingWasReadHaveRoom) {
    Capacity capacity;
    EXPECT_EQ(capacity.open_for(512), ~0ull);
    read(capacity, room(kNode0, 511));
    EXPECT_EQ(capacity.open_for(512), ~1ull);
    EXPECT_EQ(capacity.open_for(511), ~0ull);
}

TEST(Capacity, WhatIsPlannedTakesRoomAndWhatDidNotMoveGivesItBack) {
    Capacity capacity;
    read(capacity, room(kNode0, 1000));
    capacity.planned(MoveKind::kPromote, kNode0, 600);
    EXPECT_EQ(capacity.open_for(401) & 1, 0u);
    EXPECT_EQ(capacity.open_for(400) & 1, 1u);
    capacity.reported(outcome(MoveKind::kPromote, kNode0, 100, PageOutcome::kBusy), 0);
    EXPECT_EQ(capacity.open_for(500) & 1, 1u);
    capacity.reported(outcome(MoveKind::kPromote, kNode0, 400, PageOutcome::kPromoted), 0);
    EXPECT_EQ(capacity.open_for(501) & 1, 0u);
    read(capacity, room(kNode0, 600));    // 100 pages are still under way
    EXPECT_EQ(capacity.open_for(501) & 1, 0u);
    EXPECT_EQ(capacity.open_for(500) & 1, 1u);
}

TEST(Capacity, PagesThatWentToAnotherNodeAreUnderWayNoMore) {
    Capacity capacity;
    capacity.planned(MoveKind::kPromote, kNode0, 600);
    capacity.reported(outcome(MoveKind::kPromote, kNode1, 600, PageOutcome::kPromoted), 0);
    read(capacity, room(kNode0, 512));
    EXPECT_EQ(capacity.open_for(512) & 1, 1u);
}

TEST(Capacity, ANodeThatCouldNotTakeAChunkIsLeftToTheExchange) {
    Capacity capacity;
    read(capacity, room(kNode0, 300));
    capacity.note_shortage(512, 0);
    EXPECT_TRUE(capacity.tight());
    EXPECT_EQ(capacity.open_for(1) & 1, 0u);
    EXPECT_EQ(capacity.open_for_exchange(300), 1u);
    EXPECT_EQ(capacity.open_for_exchange(301), 0u);
    EXPECT_EQ(capacity.room(), 300u);
    read(capacity, room(kNode0, 8191), kSecond);
    EXPECT_TRUE(capacity.tight());
    read(capacity, room(kNode0, 8192), kSecond);
    EXPECT_FALSE(capacity.tight());
    EXPECT_EQ(capacity.open_for(512) & 1, 1u);
}

TEST(Capacity, TightnessEndsWhenNothingHotComesForTenSeconds) {
    Capacity capacity;
    read(capacity, room(kNode0, 10));
    capacity.note_shortage(512, 0);
    read(capacity, room(kNode0, 10), 9 * kSecond);
    EXPECT_TRUE(capacity.tight());
    read(capacity, room(kNode0, 10), 11 * kSecond);
    EXPECT_FALSE(capacity.tight());
}

TEST(Capacity, DemotedPagesComeAsRoomWithTheNextReading) {
    Capacity capacity;
    read(capacity, room(kNode0, 0));
    capacity.note_shortage(1, 0);
    capacity.planned(MoveKind::kDemote, kNoNode, 512);
    EXPECT_EQ(capacity.coming(), 512u);
    capacity.reported(outcome(MoveKind::kDemote, NodeId{2}, 500, PageOutcome::kDemoted), 0);
    capacity.reported(outcome(MoveKind::kDemote, NodeId{2}, 12, PageOutcome::kBusy), 0);
    EXPECT_EQ(capacity.coming(), 500u);
    EXPECT_EQ(capacity.room(), 0u);
    read(capacity, room(kNode0, 500), 1);
    EXPECT_EQ(capacity.coming(), 0u);
    EXPECT_EQ(capacity.room(), 500u);
}

TEST(Capacity, WhatTheExchangeMadeItMayFillDownToTheFloor) {
    Capacity capacity;
    const auto full = [](uint64_t above_floor) { return NodeRoom{kNode0, 0, above_floor * kPageBytes}; };
    read(capacity, full(700));
    capacity.note_shortage(1, 0);
    EXPECT_EQ(capacity.room(), 0u) << "what is free below the headroom is the program's";
    EXPECT_EQ(capacity.open_for_exchange(1), 0u);
    capacity.planned(MoveKind::kDemote, kNoNode, 512);
    capacity.reported(outcome(MoveKind::kDemote, NodeId{2}, 512, PageOutcome::kDemoted), 0);
    read(capacity, full(1212));
    EXPECT_EQ(capacity.room(), 512u);
    EXPECT_EQ(capacity.open_for_exchange(512), 1u);
    EXPECT_EQ(capacity.open_for(1) & 1, 0u);
    capacity.planned(MoveKind::kPromote, kNode0, 500);
    EXPECT_EQ(capacity.room(), 12u);
    capacity.reported(outcome(MoveKind::kPromote, kNode0, 100, PageOutcome::kBusy), 0);
    capacity.reported(outcome(MoveKind::kPromote, kNode0, 400, PageOutcome::kPromoted), 0);
    EXPECT_EQ(capacity.room(), 112u);
    read(capacity, full(50));    // others took some
    EXPECT_EQ(capacity.room(), 50u);
}

TEST(Capacity, AFullLowerTierIsLeftAloneForAWhile) {
    Capacity capacity;
    capacity.reported(outcome(MoveKind::kDemote, NodeId{2}, 12, PageOutcome::kNoMemory), 5 * kSecond);
    EXPECT_TRUE(capacity.lower_tier_is_full(4 * kSecond));
    EXPECT_FALSE(capacity.lower_tier_is_full(5 * kSecond));
}

TEST(DramLimit, NothingFitsBeforeItIsKnownWhatIsThere) {
    Capacity capacity;
    capacity.set_limit(1000 * kPageBytes);
    EXPECT_EQ(capacity.open_for(1), 0u);
    capacity.found(400);
    EXPECT_EQ(capacity.open_for(600), ~0ull);
    EXPECT_EQ(capacity.open_for(601), 0u);
    capacity.planned(MoveKind::kPromote, kNode0, 600);
    EXPECT_EQ(capacity.open_for(1), 0u);
    capacity.reported(outcome(MoveKind::kPromote, kNode0, 600, PageOutcome::kPromoted), 0);
    EXPECT_EQ(capacity.open_for(1), 0u);
    capacity.reported(outcome(MoveKind::kDemote, NodeId{2}, 5, PageOutcome::kDemoted), 0);
    EXPECT_EQ(capacity.open_for(5), ~0ull);
}

TEST(DramLimit, WhatIsBeyondItIsToGoDown) {
    Capacity capacity;
    capacity.set_limit(1000 * kPageBytes);
    EXPECT_EQ(capacity.excess(), 0u);
    capacity.found(1600);
    EXPECT_EQ(capacity.excess(), 600u);
    capacity.planned(MoveKind::kDemote, kNoNode, 500);
    EXPECT_EQ(capacity.excess(), 100u);
    capacity.reported(outcome(MoveKind::kDemote, NodeId{2}, 500, PageOutcome::kDemoted), 0);
    EXPECT_EQ(capacity.excess(), 100u);
}

// ---- heat classes

PageRecord record(unsigned freq, unsigned history) {
    PageRecord page{};
    page.freq = freq & 0xf;
    page.history = history & 3;
    return page;
}

TEST(HeatLevel, DoublesWithSamplesAndHalvesWithEach33Seconds) {
    constexpr Tick kHalfLife = 1u << kHalfLifeBits;
    EXPECT_EQ(heat_level(record(0, 0), 0), 0u);
    EXPECT_EQ(heat_level(record(1, 0), 0), 5u);
    EXPECT_EQ(heat_level(record(2, 0), 0), 6u);
    EXPECT_EQ(heat_level(record(4, 0), 0), 7u);
    EXPECT_EQ(heat_level(record(15, 3), 0), kHeatLevels - 1);
    EXPECT_EQ(heat_level(record(1, 0), kHalfLife - 1), 5u);
    EXPECT_EQ(heat_level(record(1, 0), kHalfLife), 4u);
    EXPECT_EQ(heat_level(record(1, 0), 8 * kHalfLife), 1u) << "more than a page never sampled";
}

TEST(HeatClass, TellsDemotedPagesAndDensityApart) {
    PageRecord page = record(1, 0);
    const HeatClass fresh = class_of(page, 0, 3);
    EXPECT_EQ(fresh, class_of(false, 5, 3));
    EXPECT_NE(fresh, class_of(page, 0, 2));
    page.state = static_cast<unsigned>(PageState::kDemoted) & 7;
    EXPECT_NE(fresh, class_of(page, 0, 3));
    EXPECT_TRUE(is_demoted(class_of(page, 0, 3)));
    EXPECT_FALSE(is_demoted(fresh));
    EXPECT_TRUE(is_vague(class_of(false, 0, kPassingDensity)));
    EXPECT_TRUE(is_vague(class_of(true, 0, 0)));
    EXPECT_FALSE(is_vague(class_of(false, 0, kPassingDensity + 1)));
    EXPECT_FALSE(is_vague(class_of(true, 1, 0)));
}

TEST(HeatDensity, IsThatOfDifferentPagesAndLowForAChunkJustMet) {
    constexpr HeatRules kRules{.window = 188, .half = 94, .threshold = 1};
    ChunkHeader header{};
    header.last = 1000;
    header.active_since = 900;
    const auto density = [&](uint16_t pages) {
        header.pages = {pages, 0};
        return density_of(header, kRules);
    };
    EXPECT_EQ(density(0), 0u);
    EXPECT_EQ(density(3), 1u);
    EXPECT_EQ(density(4), 2u);
    EXPECT_EQ(density(15), 2u);
    EXPECT_EQ(density(16), 3u);
    EXPECT_EQ(density(512), 4u);
    header.active_since = 907;    // in use for less than half a window
    EXPECT_EQ(density(512), kPassingDensity);
    EXPECT_EQ(density(0), 0u);
    header.huge = 1;
    EXPECT_EQ(density(1), kHugeDensity);
}

TEST(HeatLevel, RunsOfSamplesLeaveAHistoryThatLongGapsWearOff) {
    constexpr Tick kHalfLife = 1u << kHalfLifeBits;
    EXPECT_EQ(record(1, 0).history_after(kHalfLife - 1), 1u);
    EXPECT_EQ(record(1, 1).history_after(300), 2u);
    EXPECT_EQ(record(1, 3).history_after(300), 3u);
    EXPECT_EQ(record(4, 0).history_after(300), 2u) << "a long run counts like two";
    EXPECT_EQ(record(1, 0).history_after(kHalfLife), 0u);
    EXPECT_EQ(record(1, 2).history_after(2 * kHalfLife), 1u);
    EXPECT_EQ(record(1, 0).history_after(9 * kHalfLife), 0u);
}

TEST(HeatHistogram, TellsTheRateOfAClassByWhatItsPagesGot) {
    HeatHistogram histogram;
    for (Tick second = 0; second <= 4; ++second) {    // 1000 pages with 100 samples a second, 100 with as many
        histogram.count(0, Place::kTop, 600, true);
        histogram.count(0, Place::kLower, 400, true);
        histogram.count(7, Place::kLower, 100, true);
        for (int i = 0; i < 100; ++i) {
            histogram.sampled(0);
            histogram.sampled(7);
        }
        histogram.end_turn(second * kSecond);
    }
    EXPECT_EQ(histogram.pages(0, Place::kTop), 600u);
    EXPECT_EQ(histogram.pages(0, Place::kLower), 400u);
    EXPECT_EQ(histogram.pages(7, Place::kTop), 0u);
    // 200 samples are left after halving, 14 of them a standard deviation.
    EXPECT_NEAR(histogram.least_rate(0), 0.1, 0.018);
    EXPECT_NEAR(histogram.most_rate(0), 0.1, 0.018);
    EXPECT_LT(histogram.least_rate(0), 0.09);
    EXPECT_GT(histogram.most_rate(0), 0.11);
    EXPECT_NEAR(histogram.least_rate(7), 1, 0.18);
}

TEST(HeatHistogram, AClassOfWhichLittleWasSeenIsNeitherHotNorCold) {
    HeatHistogram histogram;
    histogram.count(3, Place::kTop, 1, true);
    histogram.end_turn(0);
    histogram.count(3, Place::kTop, 1, true);
    histogram.sampled(3);
    histogram.end_turn(kSecond);
    EXPECT_EQ(histogram.least_rate(3), 0);
    EXPECT_GT(histogram.most_rate(3), 2);
    EXPECT_EQ(histogram.least_rate(4), 0);
    EXPECT_GT(histogram.most_rate(4), 1e6) << "never seen";
}

TEST(HeatHistogram, AClassThatGrowsFastHasNoSharpRate) {
    HeatHistogram histogram;
    histogram.end_turn(0);
    histogram.count(3, Place::kTop, 100, true);
    histogram.end_turn(kSecond);
    histogram.count(3, Place::kTop, 400, true);
    for (int i = 0; i < 400; ++i) histogram.sampled(3);
    histogram.end_turn(2 * kSecond);
    EXPECT_LT(histogram.least_rate(3), 400.0 / 500) << "as of 400 pages all the time, and 100 before";
    EXPECT_GT(histogram.most_rate(3), 400.0 / 100);
}

TEST(HeatHistogram, SamplesOfTheSameVisitTellNothing) {
    EXPECT_TRUE(HeatHistogram::is_telling(record(0, 0), 0));
    EXPECT_FALSE(HeatHistogram::is_telling(record(1, 0), ticks_of_ms(500) - 1));
    EXPECT_TRUE(HeatHistogram::is_telling(record(1, 0), ticks_of_ms(500)));
    HeatHistogram histogram;
    for (Tick second = 0; second < 4; ++second) {    // half of the pages were sampled just now
        histogram.count(3, Place::kTop, 100, true);
        histogram.count(3, Place::kTop, 100, false);
        for (int i = 0; i < 100; ++i) histogram.sampled(3);
        histogram.end_turn(second * kSecond);
    }
    EXPECT_EQ(histogram.pages(3, Place::kTop), 200u);
    EXPECT_NEAR(histogram.least_rate(3), 1, 0.2) << "of the others";
}

TEST(HeatHistogram, OldRatesFade) {
    HeatHistogram histogram;
    histogram.end_turn(0);
    Tick now = 0;
    const auto second = [&](int samples) {
        histogram.count(3, Place::kTop, 100, true);
        for (int i = 0; i < samples; ++i) histogram.sampled(3);
        histogram.end_turn(now += kSecond);
    };
    for (int i = 0; i < 20; ++i) second(100);
    EXPECT_NEAR(histogram.least_rate(3), 1, 0.15);
    for (int i = 0; i < 20; ++i) second(0);
    EXPECT_LT(histogram.most_rate(3), 0.1);
}

// ---- the ledger

TEST(Ledger, SamplesFromDramPayForTheirChunkInProportion) {
    Ledger ledger;
    ledger.set_economy({.page_ns = 5000, .sample_gain_ns = 409600, .gain_known = true});
    ChunkHeader header{};
    for (int i = 0; i < 100; ++i) ledger.promoted(header);
    ledger.earned(header);
    EXPECT_EQ(ledger.counters().paid, 81u);
    EXPECT_EQ(header.unpaid, 19u);
    ledger.earned(header);
    ledger.earned(header);
    EXPECT_EQ(ledger.counters().paid, 100u);
    ledger.promoted(header);
    ledger.set_economy({.page_ns = 5000, .sample_gain_ns = -1, .gain_known = true});
    ledger.earned(header);
    EXPECT_EQ(ledger.counters().paid, 100u) << "the lower tier is as fast";
}

TEST(Ledger, APageDemotedBeforeItPaidIsWastedAndMovedBack) {
    Ledger ledger;
    ChunkHeader header{};
    ledger.promoted(header);
    ledger.demoted(header);
    EXPECT_EQ(ledger.counters().wasted, 1u);
    EXPECT_EQ(ledger.counters().ping_pong, 1u);
    ledger.demoted(header);    // never promoted by us
    EXPECT_EQ(ledger.counters().wasted, 1u);
    ledger.promoted(header);
    ledger.forgotten(header);
    EXPECT_EQ(ledger.counters().wasted, 2u);
    EXPECT_EQ(ledger.counters().ping_pong, 1u);
}

TEST(Ledger, PagesMovedToAndFroRaiseTheMarginAndQuietLowersIt) {
    Ledger ledger;
    ChunkHeader header{};
    const double calm = ledger.margin();
    Tick now = 0;
    const auto two_seconds = [&](int moves, int returns) {
        for (int i = 0; i < moves; ++i) ledger.promoted(header);
        for (int i = 0; i < returns; ++i) ledger.came_back();
        ledger.damp(now += 2 * kSecond);
    };
    two_seconds(1000, 50);
    EXPECT_EQ(ledger.margin(), calm) << "one in twenty is allowed";
    two_seconds(10, 7);
    EXPECT_EQ(ledger.margin(), calm) << "seven are no pattern";
    two_seconds(1000, 51);
    EXPECT_EQ(ledger.margin(), calm + 0.5);
    for (int i = 0; i < 40; ++i) two_seconds(1000, 51);
    EXPECT_EQ(ledger.margin(), 16);
    for (int i = 0; i < 60; ++i) two_seconds(0, 0);
    EXPECT_NEAR(ledger.margin(), calm, 0.05);
}

TEST(Ledger, AChunkMovedWholeIsJudgedOnceAfterAWindow) {
    Ledger ledger;
    const HeatRules rules{.window = 188, .half = 94, .threshold = 1};
    ChunkHeader header{};
    header.whole = 1;
    header.moved = 1000;
    header.samples = {6, 0};
    header.pages = {5, 0};
    ledger.judge_chunk(header, 1187, rules);
    EXPECT_EQ(ledger.counters().chunks_right, 0u);
    ledger.judge_chunk(header, 1188, rules);
    ledger.judge_chunk(header, 1189, rules);
    EXPECT_EQ(ledger.counters().chunks_right, 1u);
    header.judged = 0;
    header.pages = {3, 0};
    ledger.judge_chunk(header, 1188, rules);
    header.judged = 0;
    header.samples = {400, 0};    // over and over the same few
    header.pages = {20, 0};
    ledger.judge_chunk(header, 1188, rules);
    EXPECT_EQ(ledger.counters().chunks_wrong, 2u);
}

// ---- the policy with little room

constexpr PolicyParameters kOneSample{.freq_threshold = 1};

// Two chunks at home on node 0, which is then full; two more in the lower tier.
class FullNode : public testing::Test {
protected:
    explicit FullNode(const PolicyParameters& parameters = kOneSample) : story_(parameters) {
        set_room(1024);
        for (uint64_t chunk : {0, 1}) story_.sample_each(chunk * kPagesPerChunk, 16, 30);
        story_.wait_ms(1000);
        const auto moves = story_.plan_all();
        EXPECT_EQ(pages_in(moves), 1024u);
        story_.report_all(moves, PageOutcome::kPromoted);
        set_room(0);
    }
    void set_room(uint64_t pages) {
        const NodeRoom rooms[] = {room(kNode0, pages), room(kNode1, 0)};
        story_.policy().capacity().read(rooms, tick_of(story_.now()));
    }
    // Half a second in which these pages are sampled once each, and the moves planned in it.
    std::vector<Move> half_second(uint64_t first, unsigned count, unsigned step) {
        std::vector<Move> moves;
        for (int i = 0; i < 5; ++i) {
            for (unsigned j = static_cast<unsigned>(i); j < count; j += 5) story_.sample(first + j * uint64_t{step});
            story_.wait_ms(100);
            for (const Move& move : story_.plan()) moves.push_back(move);
        }
        return moves;
    }
    // What the mover does with it.
    void carry_out(const std::vector<Move>& moves, uint64_t room_after) {
        for (const Move& move : moves) {
            const auto what = move.kind == MoveKind::kDemote ? PageOutcome::kDemoted : PageOutcome::kPromoted;
            story_.policy().report(outcome_of(move, what, story_.now()));
        }
        set_room(room_after);
    }
    static uint32_t pages_of(const std::vector<Move>& moves, MoveKind kind) {
        uint32_t pages = 0;
        for (const Move& move : moves) pages += move.kind == kind ? move.pages : 0;
        return pages;
    }

    Story story_;
};

TEST_F(FullNode, ColdPagesGoDownBeforeHotOnesComeUp) {
    std::vector<Move> moves;
    for (int i = 0; i < 16 && moves.empty(); ++i) moves = half_second(2 * kPagesPerChunk, 80, 6);
    EXPECT_EQ(pages_of(moves, MoveKind::kPromote), 0u);
    const uint32_t down = pages_of(moves, MoveKind::kDemote);
    ASSERT_GE(down, 512u);
    EXPECT_LE(down, 1024u);
    for (const Move& move : moves) EXPECT_LT(move.address, Story::page(2 * kPagesPerChunk));
    carry_out(moves, down);
    EXPECT_EQ(story_.record_of((moves[0].address - Story::kBase) / kPageBytes).page_state(), PageState::kDemoted);
    moves = half_second(2 * kPagesPerChunk, 80, 6);
    const uint32_t up = pages_of(moves, MoveKind::kPromote);
    EXPECT_GE(up, 80u);
    EXPECT_LE(up, down);
    for (const Move& move : moves) {
        if (move.kind != MoveKind::kPromote) continue;
        EXPECT_EQ(move.target, kNode0);
        EXPECT_GE(move.address, Story::page(2 * kPagesPerChunk));
    }
}

TEST_F(FullNode, PagesThatAreAsHotAsThoseAtHomeStayDown) {
    std::mt19937 random(1);
    uint32_t moved = 0;
    for (int i = 0; i < 100; ++i) {
        for (int j = 0; j < 32; ++j) {
            const uint64_t page = random() % (4 * kPagesPerChunk);
            story_.sample(page, 0, page < 2 * kPagesPerChunk ? ServedBy::kDram : ServedBy::kExtMem);
        }
        story_.wait_ms(200);
        moved += pages_in(story_.plan());
    }
    EXPECT_LE(moved, 102u) << "one in twenty, by chance";
}

class FullNodeWithoutDemotion : public FullNode {
protected:
    FullNodeWithoutDemotion() : FullNode({.freq_threshold = 1, .demote = false}) {}
};

TEST_F(FullNodeWithoutDemotion, HotPagesWaitForRoomAndTakeIt) {
    for (int i = 0; i < 16; ++i) EXPECT_EQ(pages_in(half_second(2 * kPagesPerChunk, 80, 6)), 0u);
    set_room(40);
    const auto moves = half_second(2 * kPagesPerChunk, 80, 6);
    EXPECT_EQ(pages_of(moves, MoveKind::kPromote), 40u);
    EXPECT_EQ(pages_of(moves, MoveKind::kDemote), 0u);
}

TEST_F(FullNode, ADemotedPageNeedsMoreThanOneSampleToComeBackWhenThereIsRoom) {
    std::vector<Move> moves;
    for (int i = 0; i < 16 && moves.empty(); ++i) moves = half_second(2 * kPagesPerChunk, 80, 6);
    ASSERT_FALSE(moves.empty());
    carry_out(moves, 20000);
    const uint64_t before = story_.policy().ledger().ping_pong;    // their chunks had not paid
    const uint64_t page = (moves[0].address - Story::kBase) / kPageBytes;
    story_.sample(page);
    story_.wait_ms(100);
    EXPECT_EQ(story_.record_of(page).page_state(), PageState::kDemoted);
    EXPECT_EQ(story_.policy().ledger().ping_pong, before);
    story_.sample(page);
    EXPECT_EQ(story_.record_of(page).page_state(), PageState::kHeld);
    EXPECT_EQ(story_.policy().ledger().ping_pong, before + 1);
}

TEST_F(FullNode, APageThatMayNotGoDownIsNotAskedForAgain) {
    std::vector<Move> moves;
    for (int i = 0; i < 16 && moves.empty(); ++i) moves = half_second(2 * kPagesPerChunk, 80, 6);
    ASSERT_FALSE(moves.empty());
    for (const Move& move : moves) story_.policy().report(outcome_of(move, PageOutcome::kRefused, story_.now()));
    const uint64_t page = (moves[0].address - Story::kBase) / kPageBytes;
    EXPECT_EQ(story_.record_of(page).page_state(), PageState::kRefused);
    for (int i = 0; i < 16; ++i)
        for (const Move& move : half_second(2 * kPagesPerChunk, 80, 6)) EXPECT_NE(move.address, moves[0].address);
    story_.sample(page);    // seen in the lower tier: somebody else moved it
    EXPECT_EQ(story_.record_of(page).page_state(), PageState::kHeld);
}

TEST(DramLimitPolicy, MemoryNeverSampledGoesDownWhenThereIsTooMuch) {
    Story story({.freq_threshold = 1, .dram_limit_bytes = 512 * kPageBytes});
    for (uint64_t page = 0; page < 2 * kPagesPerChunk; page += 64)
        story.policy().found(Story::page(page), true, story.now());
    story.policy().capacity().found(2 * kPagesPerChunk);
    uint32_t down = 0;
    for (int i = 0; i < 20; ++i) {
        for (const Move& move : story.plan()) {
            EXPECT_EQ(move.kind, MoveKind::kDemote);
            down += move.pages;
            story.policy().report(outcome_of(move, PageOutcome::kDemoted, story.now()));
        }
        story.wait_ms(100);
    }
    EXPECT_EQ(down, 512u);
}

TEST(DramLimitPolicy, PagesThatAreNotThereAreAskedForOnce) {
    Story story({.freq_threshold = 1, .dram_limit_bytes = 512 * kPageBytes});
    story.policy().found(Story::page(0), true, story.now());
    story.policy().capacity().found(2 * kPagesPerChunk);
    uint32_t asked = 0;
    for (int i = 0; i < 40; ++i) {
        for (const Move& move : story.plan()) {
            asked += move.pages;
            story.policy().report(outcome_of(move, PageOutcome::kAbsent, story.now()));
        }
        story.wait_ms(100);
    }
    EXPECT_EQ(asked, 512u);
}

TEST(FoundMemory, OfTheLowerTierAndOfAFullTableIsNotKept) {
    Story story(kOneSample, published_machine(), 1);
    story.policy().found(Story::page(0), false, story.now());
    EXPECT_EQ(story.policy().heat().chunks(), 0u);
    story.policy().found(Story::page(0), true, story.now());
    story.policy().found(Story::page(kPagesPerChunk), true, story.now());
    EXPECT_EQ(story.policy().heat().chunks(), 1u);
    EXPECT_TRUE(story.record_of(0).top);
    EXPECT_EQ(story.policy().evictions(), 0u);
}

}    // namespace
}    // namespace pghot::test
