// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "tests/unit/test_policy_story.h"

namespace pghot::test {
namespace {

constexpr PolicyParameters kOneSample{.freq_window_ms = 3000, .freq_threshold = 1};

// ---- the page rule

class PageRule : public testing::TestWithParam<int> {};

TEST_P(PageRule, ThresholdSamplesMakeAPageHotAndOneLessDoesNot) {
    const auto threshold = static_cast<uint8_t>(GetParam());
    Story story({.freq_window_ms = 1000, .freq_threshold = threshold});
    for (int i = 0; i < threshold - 1; ++i) {
        story.sample(7);
        story.wait_ms(100);
    }
    story.wait_ms(500);
    EXPECT_TRUE(story.plan_all().empty());
    story.sample(7);
    story.wait_ms(400);
    const auto moves = story.plan_all();
    ASSERT_EQ(pages_in(moves), 1u);
    EXPECT_EQ(moves[0].address, Story::page(7));
    EXPECT_EQ(moves[0].target, NodeId{0});
    EXPECT_EQ(moves[0].rule, MoveRule::kPage);
}

// Times are kept in 16 ms: a gap of a window minus 16 ms surely continues, one of a window plus 32 ms surely restarts.
TEST_P(PageRule, GapJustUnderTheWindowCountsAndJustOverRestarts) {
    const auto threshold = static_cast<uint8_t>(std::max(2, GetParam()));
    for (const auto& [gap_ms, hot] : {std::pair{984u, true}, std::pair{1032u, false}}) {
        Story story({.freq_window_ms = 1000, .freq_threshold = threshold});
        for (int i = 0; i < threshold + 3; ++i) {
            if (i > 0) story.wait_ms(gap_ms);
            story.sample(7);
        }
        story.wait_ms(500);
        EXPECT_EQ(pages_in(story.plan_all()), hot ? 1u : 0u) << "gap " << gap_ms << " threshold " << int{threshold};
    }
}

INSTANTIATE_TEST_SUITE_P(Thresholds, PageRule, testing::Range(1, 8));

TEST(PagePolicy, APageServedByDramIsNoCandidateAndIsRemembered) {
    Story story(kOneSample);
    story.sample(7, 0, ServedBy::kDram);
    story.sample(7, 0, ServedBy::kNoLevel);
    story.sample(7, 0, ServedBy::kCache);
    story.wait_ms(2000);
    EXPECT_TRUE(story.plan_all().empty());
}

TEST(PagePolicy, StoresAndCacheHitsCountWhereNothingIsKnown) {
    for (ServedBy served_by : {ServedBy::kNoLevel, ServedBy::kCache}) {
        Story story(kOneSample);
        story.sample(7, 0, served_by);
        story.wait_ms(2000);
        EXPECT_EQ(pages_in(story.plan_all()), 1u);
    }
}

TEST(PagePolicy, AHeldPageSeenInDramComesHomeByItself) {
    Story story(kOneSample);
    story.sample(7);
    story.sample(7, 0, ServedBy::kDram);
    story.wait_ms(2000);
    EXPECT_TRUE(story.plan_all().empty());
}

TEST(PagePolicy, APlannedPageIsNotPlannedAgainUntilItsOutcomeComes) {
    Story story(kOneSample);
    story.sample(7);
    story.wait_ms(1000);
    const auto moves = story.plan_all();
    ASSERT_EQ(pages_in(moves), 1u);
    story.sample(7);
    story.wait_ms(1000);
    EXPECT_TRUE(story.plan_all().empty());
    story.report_all(moves, PageOutcome::kPromoted);
    story.sample(7, 0, ServedBy::kNoLevel);
    story.wait_ms(1000);
    EXPECT_TRUE(story.plan_all().empty()) << "it is at home";
}

TEST(PagePolicy, APageMovedBackBySomeoneIsACandidateAgain) {
    Story story(kOneSample);
    story.sample(7);
    story.wait_ms(1000);
    story.report_all(story.plan_all(), PageOutcome::kPromoted);
    story.sample(7);    // the same 16 ms as the move: may have been taken before it
    story.wait_ms(1000);
    EXPECT_TRUE(story.plan_all().empty());
    EXPECT_EQ(story.policy().counters().pages_returned, 0u);
    story.wait_ms(100);
    story.sample(7);
    story.wait_ms(1000);
    EXPECT_EQ(pages_in(story.plan_all()), 1u);
    EXPECT_EQ(story.policy().counters().pages_returned, 1u);
}

TEST(PagePolicy, ABusyPageIsTriedAgainAfterTheCoolDownIfStillHot) {
    Story story(kOneSample);
    story.sample(7);
    story.wait_ms(1000);
    story.report_all(story.plan_all(), PageOutcome::kBusy);
    for (int i = 0; i < 4; ++i) {
        story.wait_ms(1000);
        story.sample(7);
        EXPECT_TRUE(story.plan_all().empty());
    }
    story.wait_ms(1000);
    story.sample(7);
    story.wait_ms(1000);
    EXPECT_EQ(pages_in(story.plan_all()), 1u);
}

TEST(PagePolicy, APageThatIsBusyAgainIsLeftAloneTwiceAsLongUpToABound) {
    Story story(kOneSample);
    std::vector<uint64_t> tries;    // seconds
    for (uint64_t second = 0; second < 600; ++second) {
        story.sample(7);
        story.wait_ms(700);
        const auto moves = story.plan_all();    // waits 300 ms
        if (!moves.empty()) tries.push_back(second);
        story.report_all(moves, PageOutcome::kBusy);
    }
    ASSERT_GE(tries.size(), 9u);
    std::vector<uint64_t> gaps;
    for (size_t i = 1; i < tries.size(); ++i) gaps.push_back(tries[i] - tries[i - 1]);
    const uint64_t wanted[] = {5, 10, 20, 40, 80, 80, 80, 80};
    for (size_t i = 0; i < std::size(wanted); ++i) {
        EXPECT_GE(gaps[i], wanted[i]) << i;
        EXPECT_LE(gaps[i], wanted[i] + 3) << i << ": sampled each second, and settles";
    }
}

TEST(PagePolicy, ARefusedPageIsLeftAlone) {
    Story story(kOneSample);
    story.sample(7);
    story.wait_ms(1000);
    story.report_all(story.plan_all(), PageOutcome::kRefused);
    for (int i = 0; i < 40; ++i) {
        story.wait_ms(1000);
        story.sample(7);
    }
    EXPECT_TRUE(story.plan_all().empty());
}

TEST(PagePolicy, APlanThatWasNotTriedIsMadeAgain) {
    Story story(kOneSample);
    story.sample(7);
    story.wait_ms(1000);
    story.report_all(story.plan_all(), PageOutcome::kNotTried);
    EXPECT_TRUE(story.plan().empty());    // settles and is collected like any hot page
    story.wait_ms(1000);
    EXPECT_EQ(pages_in(story.plan_all()), 1u);
}

TEST(PagePolicy, AnAbsentPageStartsCold) {
    Story story({.freq_window_ms = 3000, .freq_threshold = 2});
    story.sample(7);
    story.sample(7);
    story.wait_ms(1000);
    story.report_all(story.plan_all(), PageOutcome::kAbsent);
    story.sample(7);
    story.wait_ms(1000);
    EXPECT_TRUE(story.plan_all().empty());
    EXPECT_EQ(story.record_of(7).freq, 1u);
}

TEST(PagePolicy, AHotPageThatNobodyCouldPlanCoolsDown) {
    Story story(kOneSample);
    story.sample(7);
    story.wait_ms(7000);
    EXPECT_TRUE(story.plan_all().empty());
    EXPECT_EQ(story.policy().counters().pages_expired, 1u);
}

TEST(PagePolicy, ForgottenMemoryIsNotPlannedAndStartsCold) {
    Story story({.freq_window_ms = 3000, .freq_threshold = 2});
    for (uint64_t page : {5, 6, 7}) story.sample(page), story.sample(page);
    story.policy().forget(Story::page(6), Story::page(7));
    story.wait_ms(1200);
    const auto moves = story.plan_all();
    ASSERT_EQ(moves.size(), 2u);
    EXPECT_EQ(moves[0].address, Story::page(5));
    EXPECT_EQ(moves[1].address, Story::page(7));
    EXPECT_EQ(story.record_of(6).freq, 0u);
    story.policy().forget(0, ~uintptr_t{0});
    EXPECT_EQ(story.policy().heat().chunks(), 0u);
    story.report_all(moves, PageOutcome::kPromoted);
    EXPECT_EQ(story.policy().counters().outcomes_unknown, 2u);
}

TEST(PagePolicy, SinglePagesWaitForCompanyAndLeaveTogetherByTarget) {
    Story story({.freq_window_ms = 3000, .freq_threshold = 1, .collect_ms = 200, .settle_ms = 100});
    for (uint64_t chunk = 0; chunk < 8; ++chunk)
        for (uint64_t page = 0; page < 3; ++page)
            story.sample(chunk * kPagesPerChunk + page * 10, static_cast<int16_t>(chunk % 2));
    story.wait_ms(2500);    // no chunk keeps its promise any more
    EXPECT_TRUE(story.plan().empty());
    story.wait_ms(250);
    const auto moves = story.plan();
    ASSERT_EQ(moves.size(), 24u);
    for (size_t i = 0; i < 24; ++i) EXPECT_EQ(moves[i].target, NodeId{static_cast<int16_t>(i / 12)});
}

TEST(PagePolicy, ABatchOfSinglePagesNeedNotWait) {
    Story story({.freq_window_ms = 3000, .freq_threshold = 1, .batch_pages = 64, .settle_ms = 1});
    for (uint64_t chunk = 0; chunk < 32; ++chunk)    // two neighbours hit over and over: skewed at once
        for (int i = 0; i < 8; ++i) story.sample(chunk * kPagesPerChunk + static_cast<uint64_t>(i % 2));
    const auto moves = story.plan();
    EXPECT_EQ(pages_in(moves), 64u);
    EXPECT_EQ(moves.size(), 32u) << "neighbours are one move";
}

// ---- the chunk rule

TEST(ChunkRule, EightSpreadHotPagesBringTheWholeChunkHomeAndSevenDoNot) {
    Story story(kOneSample);
    story.sample_each(3, 7, 64);
    EXPECT_TRUE(story.plan().empty());
    story.sample(3 + 7 * 64);
    const auto moves = story.plan();
    ASSERT_EQ(moves.size(), 1u);
    EXPECT_EQ(moves[0].address, Story::page(0));
    EXPECT_EQ(moves[0].pages, kPagesPerChunk);
    EXPECT_EQ(moves[0].rule, MoveRule::kChunk);
    EXPECT_EQ(moves[0].target, NodeId{0});
    EXPECT_EQ(moves[0].planned, story.now());
    EXPECT_EQ(story.policy().counters().pages_planned[1], kPagesPerChunk);
    story.report_all(moves, PageOutcome::kPromoted);
    EXPECT_EQ(story.header_of(0).top, kPagesPerChunk);
    EXPECT_EQ(story.header_of(0).planned, 0);
}

// The chunk that begins at page `first` goes whole to `node`.
void bring_whole_chunk_home(Story& story, uint64_t first, int16_t node = 0) {
    story.sample_each(first + 3, 8, 64, 20, node);
    const auto moves = story.plan();
    ASSERT_EQ(pages_in(moves), kPagesPerChunk);
    story.report_all(moves, PageOutcome::kPromoted);
}

TEST(ChunkRule, BesideAChunkThatWentWholeFourSpreadHotPagesAreEnoughAndThreeAreNot) {
    Story story(kOneSample);
    bring_whole_chunk_home(story, 0);
    story.sample_each(512 + 3, 3, 64);
    EXPECT_TRUE(story.plan().empty());
    story.sample(512 + 3 + 3 * 64);
    const auto moves = story.plan();
    ASSERT_EQ(moves.size(), 1u);
    EXPECT_EQ(moves[0].rule, MoveRule::kChunk);
    EXPECT_EQ(moves[0].address, Story::page(512));
}

TEST(ChunkRule, BetweenTwoChunksThatWentWholeThreeHotPagesAreEnough) {
    Story story(kOneSample);
    bring_whole_chunk_home(story, 0);
    bring_whole_chunk_home(story, 1024);
    story.sample_each(512 + 3, 2, 64);
    EXPECT_TRUE(story.plan().empty());
    story.sample(512 + 3 + 2 * 64);
    EXPECT_EQ(pages_in(story.plan()), kPagesPerChunk);
}

TEST(ChunkRule, AChunkOfAnotherNodeVouchesForNobody) {
    Story story(kOneSample);
    bring_whole_chunk_home(story, 0, 1);
    story.sample_each(512 + 3, 7, 64);
    EXPECT_TRUE(story.plan().empty());
}

TEST(ChunkRule, ASkewedChunkGoesPageByPageWhateverItsNeighbours) {
    Story story(kOneSample);
    bring_whole_chunk_home(story, 0);
    for (int i = 0; i < 10; ++i) story.sample_each(512, 3, 64, 0);
    story.plan();
    story.wait_ms(208);
    EXPECT_EQ(pages_in(story.plan()), 3u);
}

TEST(ChunkRule, ThresholdTimesAsManySamplesAreAsked) {
    Story story({.freq_window_ms = 3000, .freq_threshold = 3});
    story.sample_each(1, 23, 20);
    EXPECT_TRUE(story.plan().empty());
    story.sample(1 + 23 * 20);
    EXPECT_EQ(pages_in(story.plan()), kPagesPerChunk) << "24 samples, though no page was sampled three times";
}

// Eight pages alone are used, and spread: 16 samples of them are no chunk that is used all over.
TEST(ChunkRule, TwiceAsManySamplesOfTheSameEightPagesAreSkewed) {
    Story story({.freq_window_ms = 3000, .freq_threshold = 2});
    for (int i = 0; i < 2; ++i) story.sample_each(3, 8, 64);
    EXPECT_TRUE(story.plan().empty());
    story.wait_ms(300);
    const auto moves = story.plan();
    EXPECT_EQ(pages_in(moves), 8u);
    for (const Move& move : moves) EXPECT_EQ(move.rule, MoveRule::kPage);
}

// ---- sweeps

TEST(Sweep, OnceOverAChunkMovesNothing) {
    for (uint64_t gap_ms : {0u, 1u, 20u}) {
        Story story(kOneSample);
        for (uint64_t chunk = 0; chunk < 4; ++chunk) {
            story.sweep(chunk * kPagesPerChunk, 32, 16, gap_ms);
            EXPECT_TRUE(story.plan().empty()) << gap_ms;
        }
        for (int i = 0; i < 80; ++i) {
            story.wait_ms(100);
            EXPECT_TRUE(story.plan().empty()) << gap_ms;
        }
        EXPECT_EQ(story.policy().counters().pages_swept, 128u) << gap_ms;
    }
}

TEST(Sweep, DownwardsIsASweepToo) {
    Story story(kOneSample);
    for (uint64_t i = 32; i-- > 0;) {
        story.sample(i * 16);
        story.wait_ms(20);
    }
    for (int i = 0; i < 80; ++i) {
        EXPECT_TRUE(story.plan().empty());
        story.wait_ms(100);
    }
}

TEST(Sweep, TwoThreadsEachInItsHalfAreASweepToo) {
    Story story(kOneSample);
    for (uint64_t i = 0; i < 16; ++i) {
        story.sample(i * 16);
        story.sample(256 + i * 16);
        story.wait_ms(20);
    }
    for (int i = 0; i < 80; ++i) {
        EXPECT_TRUE(story.plan().empty());
        story.wait_ms(100);
    }
}

TEST(Sweep, ASecondOneWithinTheWindowBringsTheChunkHome) {
    Story story({.freq_window_ms = 3000, .freq_threshold = 2});
    story.sweep(0, 16, 32, 20);
    EXPECT_TRUE(story.plan().empty());
    story.wait_ms(1000);
    story.sweep(16, 16, 32, 20);    // other pages are sampled this time
    EXPECT_EQ(pages_in(story.plan()), kPagesPerChunk);
}

// 4 MB/s: a page for a millisecond, in every other of them with a second sample.
TEST(Sweep, ASlowOneThatLeavesTwoSamplesInManyPagesMovesNothing) {
    for (const uint8_t threshold : {1, 2}) {
        Story story({.freq_window_ms = 3000, .freq_threshold = threshold});
        for (uint64_t page = 0; page < kPagesPerChunk; ++page) {
            story.sample(page);
            if (page % 2 == 0) story.sample(page);
            story.wait_ms(1);
            if (page % 50 != 0) continue;
            EXPECT_TRUE(story.plan().empty()) << page;
        }
        EXPECT_TRUE(story.plan_all().empty());
        story.wait_ms(1000);
        EXPECT_TRUE(story.plan_all().empty());
    }
}

TEST(Sweep, TheSamePagesAgainAreASecondSweepToo) {
    Story story({.freq_window_ms = 3000, .freq_threshold = 2});
    for (int i = 0; i < 2; ++i) story.sweep(0, 256, 2, 2);
    EXPECT_EQ(pages_in(story.plan()), kPagesPerChunk);
}

TEST(Sweep, AtThresholdOneTheSecondOneMayComeLater) {
    for (uint8_t threshold : {1, 2}) {
        Story story({.freq_window_ms = 3000, .freq_threshold = threshold});
        story.sweep(0, 16, 32, 20);
        for (int i = 0; i < 100; ++i) {
            story.wait_ms(100);
            EXPECT_TRUE(story.plan().empty());
        }
        story.sweep(16, 16, 32, 20);
        EXPECT_EQ(pages_in(story.plan()), threshold == 1 ? kPagesPerChunk : 0u);
    }
}

TEST(Sweep, FewSamplesTellNothingAndThePageRuleDecides) {
    Story story(kOneSample);
    story.sweep(0, 3, 100, 20);
    story.wait_ms(1500);
    EXPECT_EQ(pages_in(story.plan_all()), 3u);
}

TEST(ChunkRule, HotPagesInThreeRegionsAreNotSpread) {
    Story story(kOneSample);
    for (uint64_t region = 0; region < 3; ++region) story.sample_each(region * 64, 8, 3);
    EXPECT_TRUE(story.plan().empty());
    story.sample(320);
    EXPECT_EQ(pages_in(story.plan()), kPagesPerChunk);
}

TEST(ChunkRule, EvidenceOlderThanTheWindowIsNone) {
    Story story(kOneSample);
    story.sample_each(3, 4, 64);
    story.wait_ms(3200);
    story.sample_each(3 + 4 * 64, 4, 64);
    for (const Move& move : story.plan_all()) EXPECT_EQ(move.rule, MoveRule::kPage);
}

TEST(ChunkRule, ASkewedChunkGoesPageByPageAtOnce) {
    Story story(kOneSample);
    for (int i = 0; i < 100; ++i) story.sample_each(0, 8, 64, 0);    // 8 pages spread over all regions, 800 samples
    story.plan();
    story.wait_ms(208);    // only company is waited for
    const auto moves = story.plan();
    EXPECT_EQ(pages_in(moves), 8u);
    for (const Move& move : moves) EXPECT_EQ(move.rule, MoveRule::kPage);
}

TEST(ChunkRule, ASmallArrayComesHomeAfterTheSettlingTime) {
    Story story(kOneSample);
    story.sample_each(100, 10, 1);
    story.wait_ms(400);
    EXPECT_TRUE(story.plan_all().empty());
    story.sample_each(100, 10, 1);
    const auto moves = story.plan_all();
    ASSERT_EQ(moves.size(), 1u);
    EXPECT_EQ(moves[0].address, Story::page(100));
    EXPECT_EQ(moves[0].pages, 10u);
}

TEST(ChunkRule, ASlowlySampledUniformChunkIsWaitedForBeyondTheSettlingTime) {
    Story story(kOneSample);
    unsigned planned = 0;
    std::vector<Move> moves;
    for (uint64_t i = 0; i < 8; ++i) {    // 8 samples in 2.5 s, four settling times
        story.sample((i * 197) % kPagesPerChunk);
        for (int step = 0; step < 3; ++step) {
            moves = story.plan();
            planned += static_cast<unsigned>(moves.size());
            if (!moves.empty()) break;
            story.wait_ms(100);
        }
    }
    ASSERT_EQ(planned, 1u);
    EXPECT_EQ(moves[0].rule, MoveRule::kChunk);
}

TEST(ChunkRule, ATooSlowChunkGoesPageByPage) {
    Story story(kOneSample);
    for (uint64_t i = 0; i < 3; ++i) {
        story.sample((i * 197) % kPagesPerChunk);
        story.wait_ms(1000);
    }
    const auto moves = story.plan_all();
    EXPECT_GE(pages_in(moves), 2u);
    for (const Move& move : moves) EXPECT_EQ(move.rule, MoveRule::kPage);
}

TEST(ChunkRule, NoClearMajorityMeansEveryPageToItsOwnNode) {
    Story story(kOneSample);
    for (int16_t node : {0, 1}) story.sample_each(static_cast<uint64_t>(node) * 32, 8, 64, 20, node);
    const auto moves = story.plan_all();
    EXPECT_EQ(pages_in(moves), 16u);
    for (const Move& move : moves) {
        EXPECT_EQ(move.rule, MoveRule::kPage);
        EXPECT_EQ(move.target.value, static_cast<int>(move.address / kPageBytes / 32 % 2));
    }
}

TEST(ChunkRule, PagesThatCameHomeOneByOneStillCountForTheirChunk) {
    Story story({.freq_window_ms = 3000, .freq_threshold = 1, .collect_ms = 16, .settle_ms = 16});
    story.sample_each(0, 4, 3);    // too close together to promise anything
    story.wait_ms(100);
    story.plan();
    story.wait_ms(100);
    const auto first = story.plan();
    ASSERT_EQ(pages_in(first), 4u);
    story.report_all(first, PageOutcome::kPromoted);
    story.sample_each(64, 4, 64);
    const auto moves = story.plan();
    ASSERT_EQ(moves.size(), 1u);
    EXPECT_EQ(moves[0].rule, MoveRule::kChunk);
    EXPECT_EQ(moves[0].address, Story::page(1)) << "page 0 is at home; those in between cost less than a second move";
}

TEST(ChunkRule, AChunkThatIsAtHomeIsNotPlannedForAStoreToIt) {
    Story story(kOneSample);
    for (uint64_t i = 0; i < 30; ++i) story.sample(i * 17, 0, ServedBy::kDram);
    story.sample(511, 0, ServedBy::kNoLevel);
    EXPECT_TRUE(story.plan().empty());
    story.wait_ms(800);
    const auto moves = story.plan_all();
    EXPECT_EQ(pages_in(moves), 1u) << "asked for alone, by the page rule";
}

TEST(ChunkRule, BusyPagesOfAMovedChunkAreTriedAgainWithoutNewHeatAndNotForEver) {
    Story story(kOneSample);
    story.sample_each(3, 8, 64);
    const auto moves = story.plan();
    ASSERT_EQ(pages_in(moves), kPagesPerChunk);
    story.report(Story::page(0), 100, PageOutcome::kPromoted);
    story.report(Story::page(100), 2, PageOutcome::kBusy);
    story.report(Story::page(102), 400, PageOutcome::kPromoted);
    story.report(Story::page(502), 10, PageOutcome::kBusy);
    for (unsigned round = 0; round < kChunkRetries; ++round) {
        story.wait_ms((5000 << round) - 100);
        EXPECT_TRUE(story.plan().empty());
        story.wait_ms(150);
        const auto again = story.plan();
        ASSERT_EQ(again.size(), round == 0 ? 2u : 1u) << "round " << round;
        EXPECT_EQ(again[0].address, Story::page(100));
        EXPECT_EQ(again[0].pages, round == 0 ? 2u : 1u) << "one page tells of the others";
        EXPECT_EQ(again.back().pages, round == 0 ? 10u : 1u);
        EXPECT_TRUE(story.plan().empty()) << "until it has told";
        story.report_all(again, PageOutcome::kBusy);
    }
    story.wait_ms(60000);
    EXPECT_TRUE(story.plan().empty());
    story.sample(100);
    story.wait_ms(2000);
    EXPECT_EQ(pages_in(story.plan_all()), 1u) << "one of the others, as new heat allows another try";
    EXPECT_EQ(pages_in(story.plan_all()), 1u) << "new heat counts as ever";
}

// A forked child lives for ten minutes and shares all pages of a chunk that the parent goes on using.
TEST(ChunkRule, WhileAForkedChildSharesAChunkFewOfItsPagesAreTriedAndAfterItAllComeHome) {
    Story story(kOneSample);
    std::mt19937 random(1);
    const auto use_for_100_ms = [&] {
        for (int i = 0; i < 3; ++i) story.sample(random() % kPagesPerChunk);
        story.wait_ms(100);
    };
    uint32_t first_minute = 0, later = 0;
    for (int tenth = 0; tenth < 6000; ++tenth) {
        use_for_100_ms();
        const auto moves = story.plan();
        (tenth < 600 ? first_minute : later) += pages_in(moves);
        story.report_all(moves, PageOutcome::kBusy);
    }
    EXPECT_GE(first_minute, kPagesPerChunk);
    EXPECT_LE(first_minute, 2 * kPagesPerChunk + 40);
    EXPECT_LE(later, 9 * 8u) << "one page and what was just sampled, once in 80 s";
    EXPECT_GE(later, 6u);
    std::set<uintptr_t> home;
    for (int tenth = 0; tenth < 820; ++tenth) {
        use_for_100_ms();
        for (const Move& move : story.plan()) {
            for (uint32_t i = 0; i < move.pages; ++i) home.insert(move.address + i * kPageBytes);
            story.report(move, PageOutcome::kPromoted);
        }
    }
    EXPECT_EQ(home.size(), kPagesPerChunk);
}

// A node that was full may have room at any time.
TEST(ChunkRule, NoRoomIsNoSetback) {
    Story story(kOneSample);
    story.sample_each(3, 8, 64);
    story.report_all(story.plan(), PageOutcome::kNoMemory);
    for (unsigned round = 0; round < kChunkRetries; ++round) {
        story.wait_ms(5050);
        const auto again = story.plan();
        EXPECT_EQ(pages_in(again), kPagesPerChunk) << "round " << round;
        story.report_all(again, PageOutcome::kNoMemory);
    }
}

TEST(ChunkRule, TheEdgeOfAMappingIsAskedForOnce) {
    Story story(kOneSample);
    story.sample_each(0, 8, 32);    // the program has pages 0 to 255
    const auto moves = story.plan();
    ASSERT_EQ(pages_in(moves), kPagesPerChunk);
    story.report(Story::page(0), 256, PageOutcome::kPromoted);
    story.report(Story::page(256), 256, PageOutcome::kAbsent);
    for (int i = 0; i < 50; ++i) {
        story.wait_ms(100);
        for (uint64_t page = 0; page < 256; page += 9)
            story.sample(page, 0, i % 2 == 0 ? ServedBy::kDram : ServedBy::kNoLevel);
        EXPECT_TRUE(story.plan().empty());
    }
    EXPECT_EQ(story.header_of(0).top, 256);
}

TEST(ChunkRule, AChunkPushedBackBySomeoneComesHomeAsAWhole) {
    Story story(kOneSample);
    story.sample_each(3, 8, 64);
    story.report_all(story.plan(), PageOutcome::kPromoted);
    story.wait_ms(10000);
    story.sample_each(5, 8, 64);
    const auto moves = story.plan();
    ASSERT_EQ(moves.size(), 1u);
    EXPECT_EQ(moves[0].pages, kPagesPerChunk) << "what is known of the other pages is in doubt";
}

TEST(ChunkRule, HottestChunksFirstAndNoneIsLostWhenPlacesAreFew) {
    Story story(kOneSample);
    for (uint64_t chunk = 0; chunk < 20; ++chunk)
        for (uint64_t i = 0; i < 10 + chunk * 7 % 20; ++i)
            story.sample(chunk * kPagesPerChunk + i * 197 % kPagesPerChunk), story.wait_ms(4);
    std::set<uintptr_t> planned;
    uint32_t hottest = 1000;
    for (int i = 0; i < 10; ++i) {
        const auto moves = story.plan(2);
        ASSERT_EQ(moves.size(), 2u);
        for (const Move& move : moves) {
            const uint32_t heat = story.header_of((move.address - Story::kBase) / kPageBytes).window_samples();
            EXPECT_LE(heat, hottest);
            hottest = heat;
            planned.insert(move.address);
        }
    }
    EXPECT_EQ(planned.size(), 20u);
    EXPECT_TRUE(story.plan(2).empty());
}

// Of a long list only a slice is looked at each time: what is held meanwhile keeps its turn, and nothing is lost.
TEST(ChunkRule, OfALongListAllGetTheirTurn) {
    constexpr uint64_t kChunks = 3 * kMostJudged;
    Story story(kOneSample, published_machine(), kChunks);
    std::set<uintptr_t> wanted;
    for (uint64_t i = 0; i < 10; ++i) {
        for (uint64_t chunk = 0; chunk < kChunks; ++chunk) {
            const bool is_ready = chunk % 3 != 0;    // the others have a page that is held for company
            if (is_ready || i == 0) story.sample(chunk * kPagesPerChunk + i * 197 % kPagesPerChunk);
            if (is_ready) wanted.insert(Story::page(chunk * kPagesPerChunk));
        }
        story.wait_ms(20);
    }
    std::set<uintptr_t> planned;
    for (int round = 0; round < 100; ++round) {
        for (const Move& move : story.plan(256)) {
            if (move.rule == MoveRule::kPage) continue;
            EXPECT_TRUE(planned.insert(move.address).second);
        }
        story.wait_ms(1);
    }
    EXPECT_EQ(planned, wanted);
}

TEST(ChunkRule, AChunkInSeveralRunsIsFinishedLaterWhenPlacesAreFew) {
    Story story(kOneSample);
    for (uint64_t page : {100, 200, 300}) {    // refused once, so they split the chunk
        story.sample(page);
        story.wait_ms(2000);
        story.report_all(story.plan_all(), PageOutcome::kRefused);
    }
    story.sample_each(3, 8, 64);
    std::vector<Move> all;
    for (int i = 0; i < 4; ++i)
        for (const Move& move : story.plan(1)) all.push_back(move);
    ASSERT_EQ(all.size(), 4u);
    EXPECT_EQ(pages_in(all), kPagesPerChunk - 3);
    EXPECT_TRUE(story.plan(1).empty());
    EXPECT_EQ(story.policy().counters().chunks_planned, 1u);
}

// ---- huge pages

TEST(HugeRule, AHugePageIsOnePageWhicheverPartIsSampled) {
    Story story({.freq_window_ms = 1000, .freq_threshold = 3});
    story.sample_huge(10);
    story.sample_huge(400);
    EXPECT_TRUE(story.plan().empty());
    story.sample_huge(511);
    const auto moves = story.plan();
    ASSERT_EQ(moves.size(), 1u);
    EXPECT_EQ(moves[0].rule, MoveRule::kHuge);
    EXPECT_EQ(moves[0].address, Story::page(0));
    EXPECT_EQ(moves[0].pages, kPagesPerChunk);
    story.report_all(moves, PageOutcome::kPromoted);
    story.sample_huge(3);
    EXPECT_TRUE(story.plan().empty());
}

TEST(HugeRule, OneSweepOverAHugePageMovesNothingAndASecondDoes) {
    Story story(kOneSample);
    const auto sweep = [&story] {
        for (uint64_t page = 0; page < 512; page += 32) story.sample_huge(page), story.wait_ms(1);
    };
    sweep();
    for (int i = 0; i < 10; ++i) {
        EXPECT_TRUE(story.plan().empty());
        story.wait_ms(100);
    }
    EXPECT_EQ(story.policy().counters().pages_swept, 1u);
    sweep();
    EXPECT_EQ(pages_in(story.plan()), kPagesPerChunk);
}

TEST(HugeRule, SlowSamplesOfAHugePageBringItHome) {
    Story story(kOneSample);
    story.sample_huge(7);
    EXPECT_EQ(pages_in(story.plan()), kPagesPerChunk) << "one sample tells of no sweep";
}

// ---- targets

TEST(Target, TheCallersNode) {
    Story story(kOneSample);
    story.sample_each(0, 8, 64, 20, 1);
    EXPECT_EQ(story.plan().at(0).target, NodeId{1});
}

TEST(Target, AFixedNodeWhoeverCalls) {
    Story story({.freq_threshold = 1, .target = TargetMode::kFixed, .fixed_target = NodeId{1}});
    for (int16_t node : {0, 1}) story.sample_each(static_cast<uint64_t>(node) * 64, 4, 128, 20, node);
    const auto moves = story.plan();
    ASSERT_EQ(moves.size(), 1u) << "no majority is needed when all go to one place";
    EXPECT_EQ(moves[0].target, NodeId{1});
}

TEST(Target, TheLowerTierIsNeverATarget) {
    Story story({.freq_threshold = 1, .target = TargetMode::kFixed, .fixed_target = NodeId{2}});
    story.sample_each(0, 8, 64, 20, 1);
    EXPECT_EQ(story.plan().at(0).target, NodeId{1});
}

TEST(Target, AlternateDealsChunksOutInTurn) {
    Story story({.freq_threshold = 1, .target = TargetMode::kAlternate});
    for (uint64_t chunk = 0; chunk < 10; ++chunk) story.sample_each(chunk * kPagesPerChunk, 8, 64);
    int on_node_1 = 0;
    for (const Move& move : story.plan()) on_node_1 += move.target == NodeId{1};
    EXPECT_EQ(on_node_1, 5);
}

TEST(Target, OutsideTheCpusetTheNearestTopNodeByTheCallersRow) {
    Topology topology = published_machine();
    topology.node_count = 4;
    topology.nodes[3] = {.online_memory = true, .has_cpus = true, .allowed = true};
    topology.distance[0] = {10, 30, 50, 20};
    topology.nodes[0].allowed = false;
    Story story(kOneSample, topology);
    story.sample_each(0, 8, 64);
    EXPECT_EQ(story.plan().at(0).target, NodeId{3});
}

TEST(Target, AFullNodeIsReplacedByTheNearestThatIsNearerThanTheLowerTier) {
    Story story(kOneSample);
    story.sample_each(0, 8, 64);
    auto moves = story.plan();
    story.report_all(moves, PageOutcome::kNoMemory);
    story.sample_each(kPagesPerChunk, 8, 64);
    moves = story.plan();
    ASSERT_EQ(moves.size(), 1u);
    EXPECT_EQ(moves[0].target, NodeId{1});
    story.report_all(moves, PageOutcome::kNoMemory);
    story.sample_each(uint64_t{2} * kPagesPerChunk, 8, 64);
    EXPECT_TRUE(story.plan().empty()) << "both are full";
    story.wait_ms(5100);
    story.sample_each(uint64_t{2} * kPagesPerChunk, 8, 64);
    moves = story.plan();
    ASSERT_EQ(moves.size(), 3u) << "after the cool-down";
    for (const Move& move : moves) EXPECT_EQ(move.target, NodeId{0});
}

TEST(Target, AnExpanderNearerThanTheOtherSocketIsBetterThanThatSocket) {
    Topology topology = published_machine();
    topology.distance[0] = {10, 32, 20};
    Story story(kOneSample, topology);
    story.sample_each(0, 8, 64);
    story.report_all(story.plan(), PageOutcome::kNoMemory);
    story.sample_each(kPagesPerChunk, 8, 64);
    EXPECT_TRUE(story.plan().empty());
}

TEST(Target, MoreCpuNodesThanIndicesShareTheNearest) {
    Topology topology;
    topology.node_count = 34;
    for (unsigned i = 0; i < 34; ++i) {
        topology.nodes[i] = {.online_memory = true, .has_cpus = i < 32, .allowed = true, .lower_tier = i >= 32};
        for (unsigned j = 0; j < 34; ++j) topology.distance[i][j] = i == j ? 10 : i / 4 == j / 4 ? 12 : 40;
        topology.distance[i][32] = topology.distance[i][33] = 60;
    }
    TargetMap targets(topology, TargetMode::kCaller, kNoNode);
    EXPECT_EQ(targets.choose(targets.caller(NodeId{14}), 0), NodeId{14});
    EXPECT_EQ(targets.choose(targets.caller(NodeId{15}), 0), NodeId{12}) << "of its own socket";
    EXPECT_NE(targets.caller(NodeId{31}), kUnknownCaller);
    EXPECT_EQ(targets.caller(NodeId{33}), kUnknownCaller);
    EXPECT_EQ(targets.caller(kNoNode), kUnknownCaller);
    EXPECT_EQ(targets.caller(NodeId{4000}), kUnknownCaller);
}

TEST(Target, NoTopTierNoMoves) {
    Topology topology = published_machine();
    topology.nodes[0].allowed = topology.nodes[1].allowed = false;
    Story story(kOneSample, topology);
    story.sample_each(0, 20, 20);
    story.wait_ms(2000);
    EXPECT_TRUE(story.plan_all().empty());
}

// ---- everything at once

TEST(Policy, ParametersOutOfRangeAreBroughtIntoIt) {
    const HeatRules low = PolicyParameters{.freq_window_ms = 0, .freq_threshold = 0}.heat_rules();
    EXPECT_EQ(low.window, 63u);
    EXPECT_EQ(low.threshold, 1);
    const HeatRules high = PolicyParameters{.freq_window_ms = 1000000, .freq_threshold = 99}.heat_rules();
    EXPECT_EQ(high.window, 1024u);
    EXPECT_EQ(high.threshold, 7);
}

TEST(Policy, WithoutStorageNothingIsRecordedAndNothingBreaks) {
    Story story(kOneSample, published_machine(), 0);
    EXPECT_FALSE(story.sample(1));
    EXPECT_TRUE(story.plan().empty());
    story.report(Story::page(1), 1, PageOutcome::kBusy);
    story.policy().forget(0, ~uintptr_t{0});
}

// Any order of samples, plans, outcomes and forgetting: no page is planned while a plan of it is under way, no move
// crosses a chunk, targets are top-tier nodes, and nothing stays planned at the end.
TEST(Policy, PlannedPagesAreNeverPlannedTwiceUnderRandomUse) {
    const auto seed = std::random_device{}();
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    for (int round = 0; round < 20; ++round) {
        Story story({.freq_window_ms = 1000,
                     .freq_threshold = static_cast<uint8_t>(1 + random() % 3),
                     .target = static_cast<TargetMode>(random() % 3),
                     .fixed_target = NodeId{static_cast<int16_t>(random() % 3)},
                     .batch_pages = static_cast<uint32_t>(1 + random() % 64),
                     .cool_down_ms = 200});
        std::vector<Move> under_way;
        std::set<uintptr_t> planned;
        const auto finish = [&](const Move& move) {
            for (uint32_t i = 0; i < move.pages;) {
                const auto count = std::min<uint32_t>(move.pages - i, 1 + random() % 200);
                const auto outcome = static_cast<PageOutcome>(random() % 7);
                story.report(move.address + i * kPageBytes, count, outcome, move.target);
                i += count;
            }
            for (uint32_t i = 0; i < move.pages; ++i) planned.erase(move.address + i * kPageBytes);
        };
        for (int step = 0; step < 3000; ++step) {
            story.wait_ms(random() % 8);
            const uint64_t page = random() % 8 * kPagesPerChunk + (random() % 2 ? random() % 512 : random() % 8);
            const auto level = static_cast<ServedBy>(random() % 4);
            if (random() % 50 == 0) story.sample_huge(page);
            story.sample(page, static_cast<int16_t>(page / kPagesPerChunk % 2), level);
            if (random() % 20 == 0) {
                for (const Move& move : story.plan(1 + random() % 8)) {
                    ASSERT_EQ(chunk_of(move.address), chunk_of(move.address + move.pages * kPageBytes - 1));
                    ASSERT_TRUE(move.target == NodeId{0} || move.target == NodeId{1});
                    for (uint32_t i = 0; i < move.pages; ++i) {
                        const bool fresh = planned.insert(move.address + i * kPageBytes).second;
                        // A chunk that turned into a huge page takes in what was planned of it before.
                        ASSERT_TRUE(fresh || move.rule == MoveRule::kHuge) << "step " << step;
                    }
                    under_way.push_back(move);
                }
            }
            if (!under_way.empty() && random() % 10 == 0) {
                const size_t which = random() % under_way.size();
                finish(under_way[which]);
                under_way.erase(under_way.begin() + static_cast<ptrdiff_t>(which));
            }
        }
        for (const Move& move : under_way) finish(move);
        for (HeatTable::Block block = 0; block < story.policy().heat().blocks_used(); ++block)
            EXPECT_EQ(story.policy().heat().header(block).planned, 0) << "block " << block;
    }
}

}    // namespace
}    // namespace pghot::test
