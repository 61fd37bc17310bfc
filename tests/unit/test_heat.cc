// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "runtime/policy/heat_table.h"
#include "runtime/policy/occupancy.h"

namespace pghot {
namespace {

constexpr HeatRules kRules{.window = 188, .half = 94, .threshold = 2};    // 3 s

struct Heat {
    explicit Heat(size_t chunks, const HeatRules& rules = kRules)
        : storage(HeatTable::bytes_for(chunks)), table(storage, rules) {}
    HeatTable::Block sample(uint64_t chunk, unsigned page, Tick tick, uint8_t caller = 0) {
        const auto block = table.obtain(chunk, tick);
        table.heat(block, page, tick, caller);
        return block;
    }
    std::vector<std::byte> storage;
    HeatTable table;
};

// What the header counts must be what its records say.
void expect_counts_match(const HeatTable& table, HeatTable::Block block) {
    const ChunkHeader& header = table.header(block);
    uint32_t pages = 0, held = 0, top = 0;
    std::array<uint32_t, kRegions> regions{};
    for (unsigned i = 0; i < kPagesPerChunk; ++i) {
        const PageRecord& page = table.pages(block)[i];
        held += page.page_state() == PageState::kHeld;
        top += page.top;
        if (page.freq == 0) continue;
        if (later_by(header.last_sample(page), header.half_start - table.rules().half) < 0) continue;
        ++pages;
        ++regions[i / kPagesPerRegion];
    }
    EXPECT_EQ(header.window_pages(), pages);
    EXPECT_EQ(header.held, held);
    EXPECT_EQ(header.top, top);
    for (unsigned i = 0; i < kRegions; ++i)
        EXPECT_EQ(header.region_pages[0][i] + header.region_pages[1][i], regions[i]);
}

TEST(Occupancy, TableIsTheExpectedNumberOfDifferentPages) {
    for (uint32_t samples : {0u, 1u, 8u, 64u, 512u, 2047u}) {
        const double exact = 512 * (1 - std::pow(511.0 / 512, samples));
        EXPECT_NEAR(uniform_occupancy(samples) / double{kOccupancyUnit}, exact, 1.0 / kOccupancyUnit) << samples;
    }
    EXPECT_EQ(uniform_occupancy(2048), 512 * kOccupancyUnit);
    EXPECT_EQ(uniform_occupancy(1u << 17), 512 * kOccupancyUnit);
}

TEST(Occupancy, AQuarterOfThePagesHasItsOwnTable) {
    for (uint32_t samples : {0u, 1u, 8u, 64u, 512u})
        EXPECT_NEAR(quarter_occupancy(samples) / double{kOccupancyUnit}, 128 * (1 - std::pow(127.0 / 128, samples)),
                    1.0 / kOccupancyUnit)
            << samples;
    EXPECT_EQ(quarter_occupancy(2048), 128 * kOccupancyUnit);
}

TEST(Occupancy, FewerPagesThanAQuarterOrHalfOfTheUniformOnesAreSkewed) {
    EXPECT_FALSE(is_skewed(0, 0));
    EXPECT_FALSE(is_skewed(8, 6));    // 7.8 of a quarter, less two
    EXPECT_TRUE(is_skewed(8, 5));
    EXPECT_FALSE(is_skewed(16, 14));    // 15.1
    EXPECT_TRUE(is_skewed(16, 13));
    EXPECT_FALSE(is_skewed(100000, 256));
    EXPECT_TRUE(is_skewed(100000, 255));
}

TEST(PageRecord, MajorityOfCallersWinsAndAnotherTakesOverAfterEightSamples) {
    PageRecord page{};
    for (int i = 0; i < 20; ++i) page.vote(3);
    EXPECT_EQ(page.node, 3u);
    EXPECT_EQ(page.margin, kMarginMax);
    for (int i = 0; i < 7; ++i) page.vote(1);
    EXPECT_EQ(page.node, 3u) << "seven samples only undo the margin";
    page.vote(1);
    EXPECT_EQ(page.node, 1u);
}

TEST(PageRecord, AnUnknownCallerHasNoVote) {
    PageRecord page{};
    page.vote(kUnknownCaller);
    EXPECT_EQ(page.margin, 0u);
    page.vote(2);
    page.vote(kUnknownCaller);
    EXPECT_EQ(page.node, 2u);
    EXPECT_EQ(page.margin, 1u);
}

TEST(HeatTable, CostsAtMostFourAndAQuarterBytesAPage) {
    for (size_t chunks : {size_t{64}, size_t{4096}})
        EXPECT_LE(HeatTable::bytes_for(chunks), chunks * kPagesPerChunk * 17 / 4) << chunks;
}

TEST(HeatTable, StorageOfAnySizeHoldsWhatFits) {
    for (size_t bytes : {size_t{0}, size_t{1}, size_t{63}, size_t{2000}, size_t{2171}}) {
        std::vector<std::byte> storage(bytes);
        HeatTable table(storage, kRules);
        EXPECT_EQ(table.capacity(), 0u);
        EXPECT_EQ(table.obtain(7, 0), HeatTable::kNoBlock);
        EXPECT_EQ(table.find(7), HeatTable::kNoBlock);
    }
    std::vector<std::byte> odd(HeatTable::bytes_for(3) + 1);
    HeatTable table(std::span<std::byte>(odd).subspan(1), kRules);
    EXPECT_EQ(table.capacity(), 3u);
    const auto block = table.obtain(7, 0);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(table.pages(block).data()) % 64, 0u);
}

TEST(HeatTable, AddressesBeyondUserSpaceAreRefused) {
    Heat heat(4);
    EXPECT_EQ(heat.table.obtain(0xffff800000000000ull / kChunkBytes, 0), HeatTable::kNoBlock);
    EXPECT_NE(heat.table.obtain((1ull << 57) / kChunkBytes - 1, 0), HeatTable::kNoBlock);
}

TEST(HeatTable, ChunksComeAndGoWithoutLosingOthers) {
    const auto seed = std::random_device{}();
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    Heat heat(200);
    std::map<uint64_t, HeatTable::Block> present;
    for (int step = 0; step < 20000; ++step) {
        const uint64_t chunk = random() % 3 == 0 ? random() % 100 : HeatTable::kChunkLimit - 1 - random() % 90;
        const auto found = heat.table.find(chunk);
        const auto known = present.find(chunk);
        ASSERT_EQ(found, known == present.end() ? HeatTable::kNoBlock : known->second);
        if (found != HeatTable::kNoBlock) {
            heat.table.release(found);
            present.erase(known);
        } else {
            present[chunk] = heat.table.obtain(chunk, 0);
        }
        ASSERT_EQ(heat.table.chunks(), present.size());
    }
    EXPECT_EQ(heat.table.evictions(), 0u);
}

TEST(HeatTable, FrequencyGoesOnUpToTheWindowAndRestartsBeyond) {
    Heat heat(1);
    auto block = heat.sample(5, 9, 1000);
    heat.sample(5, 9, 1000 + kRules.window);
    EXPECT_EQ(heat.table.pages(block)[9].freq, 2u);
    heat.sample(5, 9, 1000 + 2 * kRules.window + 1);
    EXPECT_EQ(heat.table.pages(block)[9].freq, 1u);
    for (int i = 0; i < 40; ++i) heat.sample(5, 9, 2000);
    EXPECT_EQ(heat.table.pages(block)[9].freq, kFrequencyMax);
}

TEST(HeatTable, ASampleFromAnEarlierRingCountsAsTheNewest) {
    Heat heat(1);
    const auto block = heat.sample(5, 9, 1000);
    heat.sample(5, 10, 997);
    EXPECT_EQ(heat.table.header(block).last, 1000u);
    EXPECT_EQ(heat.table.header(block).last_sample(heat.table.pages(block)[10]), 1000u);
}

// 14 bits of time come round after 262 s; a page sampled exactly one round ago looks as if sampled now.
TEST(HeatTable, WrappedTimeOfAPageIsOld) {
    Heat heat(1);
    auto block = heat.sample(5, 9, 5000);
    for (Tick tick = 5000; tick < 5000 + 16384; tick += 50) heat.sample(5, 10, tick);    // the chunk stays busy
    heat.sample(5, 9, 5000 + 16384);
    EXPECT_EQ(heat.table.pages(block)[9].freq, 1u);
    EXPECT_EQ(heat.table.pages(block)[10].freq, kFrequencyMax);
    expect_counts_match(heat.table, block);
}

TEST(HeatTable, WrappedTimeOfAChunkIsOld) {
    Heat heat(1);
    auto block = heat.sample(5, 9, 5000);
    heat.sample(5, 9, 5000 + 3 * 16384 + 1);    // nothing in between
    EXPECT_EQ(heat.table.pages(block)[9].freq, 1u);
    EXPECT_EQ(heat.table.header(block).window_pages(), 1u);
}

TEST(HeatTable, TickCounterItselfMayWrap) {
    Heat heat(1);
    const auto block = heat.sample(5, 9, 0xffffffff - 10);
    heat.sample(5, 9, 20);
    EXPECT_EQ(heat.table.pages(block)[9].freq, 2u);
    heat.sample(5, 9, 20 + kRules.window + 1);
    EXPECT_EQ(heat.table.pages(block)[9].freq, 1u);
}

TEST(HeatTable, WindowForgetsBetweenHalfAWindowAndAWindow) {
    Heat heat(1);
    const auto block = heat.sample(5, 9, 1000);
    const auto samples_at = [&](Tick now) {
        heat.table.header(block).rotate(now, kRules);
        return heat.table.header(block).window_samples();
    };
    EXPECT_EQ(samples_at(1000 + kRules.half), 1u);
    EXPECT_EQ(samples_at(1000 + 2 * kRules.half - 1), 1u);
    EXPECT_EQ(samples_at(1000 + 2 * kRules.half), 0u);
}

TEST(HeatTable, CountsStayExactUnderRandomUse) {
    const auto seed = std::random_device{}();
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    Heat heat(3);
    Tick now = random();
    for (int step = 0; step < 30000; ++step) {
        now += random() % 500 == 0 ? random() % 40000 : random() % 4;
        const uint64_t chunk = 50 + random() % 4;    // one more than fit
        const unsigned page = random() % 4 == 0 ? random() % kPagesPerChunk : random() % 6;
        const auto block = heat.sample(chunk, page, now, static_cast<uint8_t>(random() % kCallers));
        auto& header = heat.table.header(block);
        auto& record = heat.table.pages(block)[page];
        switch (random() % 16) {
            case 0:
                header.set_state(record, PageState::kHeld);
                break;
            case 1:
                header.set_state(record, PageState::kCold);
                break;
            case 2:
                header.set_top(record, random() % 2 == 0);
                break;
            case 3:
                heat.table.reset_page(block, page);
                break;
            case 4:
                header.rotate(now + random() % 100, kRules);
                break;
            default:
                break;
        }
        if (step % 64 == 0) expect_counts_match(heat.table, block);
        ASSERT_FALSE(HasFailure()) << "step " << step;
    }
}

TEST(HeatTable, TheColdestChunkMakesRoom) {
    Heat heat(4);
    for (Tick tick = 0; tick < 20; ++tick) {
        heat.sample(1, tick, tick);
        heat.sample(3, tick, tick);
        heat.sample(4, tick, tick);
    }
    heat.sample(2, 7, 15);
    heat.sample(9, 0, 21);
    EXPECT_EQ(heat.table.evictions(), 1u);
    EXPECT_EQ(heat.table.find(2), HeatTable::kNoBlock);
    for (uint64_t chunk : {1, 3, 4, 9}) EXPECT_NE(heat.table.find(chunk), HeatTable::kNoBlock) << chunk;
}

TEST(HeatTable, AChunkWithPlannedPagesStaysWhileThereIsAnother) {
    Heat heat(2);
    const auto block = heat.sample(1, 0, 0);
    heat.table.header(block).set_state(heat.table.pages(block)[0], PageState::kPlanned);
    for (Tick tick = 10; tick < 20; ++tick) heat.sample(2, tick, tick);
    heat.sample(3, 0, 20);
    EXPECT_NE(heat.table.find(1), HeatTable::kNoBlock);
    EXPECT_EQ(heat.table.find(2), HeatTable::kNoBlock);
}

TEST(HeatTable, ANewChunkInAnOldBlockStartsCold) {
    Heat heat(1);
    for (Tick tick = 0; tick < 9; ++tick) heat.sample(1, 3, tick);
    const auto block = heat.sample(2, 4, 10);
    EXPECT_EQ(heat.table.pages(block)[3].freq, 0u);
    EXPECT_EQ(heat.table.header(block).window_samples(), 1u);
    expect_counts_match(heat.table, block);
}

TEST(HeatTable, ReadyListHoldsEachBlockOnceAcrossReuse) {
    Heat heat(2);
    const auto block = heat.sample(1, 0, 0);
    heat.table.list(block);
    heat.table.list(block);
    heat.table.release(block);
    const auto again = heat.sample(2, 0, 0);
    ASSERT_EQ(again, block);
    heat.table.list(again);
    EXPECT_EQ(heat.table.listed().size(), 1u);
    heat.table.keep(0);
    heat.table.list(again);
    EXPECT_EQ(heat.table.listed().size(), 1u);
}

TEST(ChunkHeader, MajorityIsClearByALeadOfEightOverThreeTimesTheOthers) {
    const auto agreement = [](unsigned most, unsigned others) {
        Heat heat(1);
        HeatTable::Block block = 0;
        for (unsigned i = 0; i < most + others; ++i) block = heat.sample(5, i, 0, i < most ? 0 : 1);
        return heat.table.header(block).majority().agreement;
    };
    EXPECT_EQ(agreement(8, 0), Agreement::kClear);
    EXPECT_EQ(agreement(7, 0), Agreement::kOpen);
    EXPECT_EQ(agreement(11, 1), Agreement::kClear);
    EXPECT_EQ(agreement(10, 1), Agreement::kOpen);
    EXPECT_EQ(agreement(9, 3), Agreement::kOpen);
    EXPECT_EQ(agreement(9, 4), Agreement::kNone);
}

TEST(ChunkHeader, SamplesOfUnknownCpusAreNoVotes) {
    Heat heat(1);
    HeatTable::Block block = 0;
    for (unsigned i = 0; i < 20; ++i) block = heat.sample(5, i, 0, i < 8 ? 3 : kUnknownCaller);
    EXPECT_EQ(heat.table.header(block).majority().caller, 3);
    EXPECT_EQ(heat.table.header(block).majority().agreement, Agreement::kClear);
}

TEST(ChunkHeader, OldUsersFadeSoThatANewOneCanWin) {
    Heat heat(1);
    HeatTable::Block block = 0;
    for (unsigned i = 0; i < 400; ++i) block = heat.sample(5, i, 0, 0);
    for (unsigned i = 0; i < 400; ++i) heat.sample(5, i, i, 1);    // two windows
    EXPECT_EQ(heat.table.header(block).majority().caller, 1);
    EXPECT_EQ(heat.table.header(block).majority().agreement, Agreement::kClear);
}

TEST(ChunkHeader, TheRingThatIsDrainedLastHasNoMoreWeight) {
    Heat heat(1);
    HeatTable::Block block = 0;
    for (unsigned i = 0; i < 300; ++i) block = heat.sample(5, i, 10, 0);
    for (unsigned i = 0; i < 300; ++i) heat.sample(5, i, 10, 1);
    EXPECT_EQ(heat.table.header(block).majority().agreement, Agreement::kNone);
}

}    // namespace
}    // namespace pghot
