// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>

#include "runtime/sources/recording.h"
#include "runtime/sources/replay.h"
#include "tests/sim/simulator.h"

namespace pghot::sim {
namespace {

constexpr uint64_t kPages128MiB = 32768;
constexpr PolicyParameters kOneSample{.freq_threshold = 1};

uint64_t pages_by(Simulator& sim, MoveRule rule) {
    return sim.policy().counters().pages_planned[static_cast<size_t>(rule)];
}

std::vector<uint64_t> shuffled(uint64_t first, uint64_t count, Random& random) {
    std::vector<uint64_t> order(count);
    std::iota(order.begin(), order.end(), first);
    std::shuffle(order.begin(), order.end(), random);
    return order;
}

// ---- by replay: what is written, read and acted upon is the recording

struct Recorded {
    using Bytes = std::vector<std::byte>;
    static bool append(void* self, std::span<const std::byte> bytes) {
        auto& file = *static_cast<Bytes*>(self);
        file.insert(file.end(), bytes.begin(), bytes.end());
        return true;
    }

    Recorded() : buffer(4096), writer(buffer, {append, &file}) { writer.begin(TimeNs{}); }
    // Each of these pages is sampled once in `period_ms`, staggered, for `seconds`.
    void sample_pages(uint64_t first, uint64_t count, uint64_t period_ms, uint64_t seconds) {
        for (uint64_t start = 0; start < seconds * 1000; start += period_ms)
            for (uint64_t i = 0; i < count; ++i)
                writer.write({.address = Simulator::address(first + i),
                              .time = TimeNs{(start + i * period_ms / count) * kNsPerMs},
                              .tid = 1,
                              .node = NodeId{0},
                              .served_by = ServedBy::kExtMem});
    }
    // Through the same policy, budget and mover as everything else here.
    void replay_into(Simulator& sim) {
        writer.flush();
        std::vector<Sample> order(65536);    // the recording holds one group of pages after the other
        ReplaySource source(file, order);
        ASSERT_TRUE(source.start(sim.now()).ok());
        const auto feed = [&](const Sample& sample) { sim.feed(sample); };
        while (!source.finished()) {
            sim.run_ms(50);
            source.drain(sim.now(), feed);
        }
        EXPECT_EQ(source.out_of_order(), 0u);
    }

    Bytes file;
    Bytes buffer;
    RecordingWriter writer;
};

TEST(Replay, PagesSampledOncePerThreeSecondsStay) {
    Simulator sim(published_machine(2), {.policy = {.freq_window_ms = 1000, .freq_threshold = 2}, .pages = 2048});
    Recorded recording;
    recording.sample_pages(0, 2048, 3000, 60);
    recording.replay_into(sim);
    EXPECT_EQ(sim.samples(), 2048u * 20);
    EXPECT_EQ(sim.pages_moved(), 0u);
    EXPECT_EQ(pages_by(sim, MoveRule::kChunk) + pages_by(sim, MoveRule::kPage), 0u);
}

TEST(Replay, PagesSampledTenTimesASecondComeHome) {
    Simulator sim(published_machine(2), {.policy = {.freq_window_ms = 1000, .freq_threshold = 2}, .pages = 2048});
    Recorded recording;
    recording.sample_pages(100, 300, 100, 10);
    recording.replay_into(sim);
    EXPECT_EQ(sim.pages_on(0, 100, 300), 300u);
}

TEST(Replay, BothKindsInOneProgramAreToldApart) {
    Simulator sim(published_machine(2), {.policy = {.freq_window_ms = 1000, .freq_threshold = 2}, .pages = 2048});
    Recorded recording;
    recording.sample_pages(0, 512, 3000, 12);
    recording.sample_pages(1024, 512, 100, 12);
    recording.replay_into(sim);
    EXPECT_EQ(sim.pages_on(0, 0, 1024), 0u);
    EXPECT_EQ(sim.pages_on(0, 1024, 512), 512u);
}

// ---- uniform access

TEST(Uniform, A128MiBSetComesHomeInWholeChunksWithinTwoThousandSamples) {
    Simulator sim(published_machine(2), {.policy = kOneSample, .pages = kPages128MiB});
    sim.add({.cpu = 0, .page = uniform(0, kPages128MiB)});
    while (sim.share_on(0, 0, kPages128MiB) < 0.95 && sim.samples() < 20000) sim.run_ms(50);
    EXPECT_LT(sim.samples(), 2000u);
    sim.run_ms(2000);
    EXPECT_EQ(sim.pages_on(0, 0, kPages128MiB), kPages128MiB);
    EXPECT_GT(pages_by(sim, MoveRule::kChunk), kPages128MiB * 98 / 100);
    EXPECT_EQ(sim.most_moves_of_a_page(), 1u);
    EXPECT_LT(sim.calls().size(), 80u) << "few large calls";
}

TEST(Uniform, SlowSamplingStillMovesChunksNotPages) {
    Simulator sim(published_machine(2), {.policy = kOneSample, .pages = kPages128MiB});
    sim.add({.cpu = 0, .samples_per_second = 350, .page = uniform(0, kPages128MiB)});    // period 10000 in the emulator
    sim.run_ms(6000);
    EXPECT_GE(sim.share_on(0, 0, kPages128MiB), 0.95);
    EXPECT_GT(pages_by(sim, MoveRule::kChunk), 50 * pages_by(sim, MoveRule::kPage));
}

TEST(Uniform, ThresholdTwoConvergesToo) {
    Simulator sim(published_machine(2), {.policy = {.freq_threshold = 2}, .pages = kPages128MiB});
    for (uint16_t cpu : {0, 2}) sim.add({.cpu = cpu, .page = uniform(0, kPages128MiB)});
    sim.run_ms(6000);
    EXPECT_GE(sim.share_on(0, 0, kPages128MiB), 0.95);
    EXPECT_EQ(sim.most_moves_of_a_page(), 1u);
}

TEST(Uniform, ASmallArrayComesHomeAfterTheSettlingTime) {
    Simulator sim(published_machine(2), {.policy = kOneSample, .pages = kPages128MiB});
    sim.add({.cpu = 1, .samples_per_second = 50, .page = uniform(777, 10)});
    sim.run_ms(3000);
    EXPECT_EQ(sim.pages_on(1, 777, 10), 10u);
    EXPECT_EQ(sim.pages_moved(), 10u);
}

TEST(Uniform, AnArraySweptEveryTenSecondsStays) {
    Simulator sim(published_machine(2), {.policy = {.freq_threshold = 2}, .pages = 4096});
    for (int sweep = 0; sweep < 6; ++sweep) {
        for (uint64_t page = 0; page < 4096; page += 3)    // every third page is sampled, another third each time
            sim.feed({.address = Simulator::address((page + static_cast<uint64_t>(sweep) % 3) % 4096),
                      .time = sim.now(),
                      .node = NodeId{0},
                      .served_by = ServedBy::kExtMem});
        sim.run_ms(10000);
    }
    EXPECT_EQ(sim.pages_moved(), 0u);
}

TEST(Uniform, BusyPagesFollowTheirChunkLater) {
    Simulator sim(published_machine(2), {.policy = kOneSample, .pages = 8192, .busy_share = 0.05});
    sim.add({.cpu = 0, .page = uniform(0, 8192)});
    sim.run_ms(3000);
    EXPECT_GT(sim.pages_on(2, 0, 8192), 100u);
    sim.remove_threads();
    sim.run_ms(20000);
    EXPECT_LT(sim.pages_on(2, 0, 8192), 10u);
}

TEST(Uniform, ProgramsEndInTheMiddleOfAChunk) {
    Simulator sim(published_machine(2), {.policy = kOneSample, .pages = 512 + 300});
    sim.add({.cpu = 0, .page = uniform(0, 812)});
    sim.run_ms(5000);
    EXPECT_EQ(sim.pages_on(0, 0, 812), 812u);
    const uint64_t planned = pages_by(sim, MoveRule::kChunk);
    sim.run_ms(20000);
    EXPECT_EQ(pages_by(sim, MoveRule::kChunk), planned) << "what is not there is asked for once";
}

TEST(Uniform, PagesPushedBackBySomeoneComeHomeAgain) {
    Simulator sim(published_machine(2), {.policy = kOneSample, .pages = 8192});
    sim.add({.cpu = 0, .page = uniform(0, 8192)});
    sim.run_ms(3000);
    ASSERT_EQ(sim.pages_on(0, 0, 8192), 8192u);
    sim.place(0, 8192, 2);
    sim.run_ms(3000);
    EXPECT_EQ(sim.pages_on(0, 0, 8192), 8192u);
    EXPECT_GT(sim.policy().counters().pages_returned, 0u);
}

TEST(Uniform, MemoryInDramFromTheStartIsLeftAlone) {
    Simulator sim(published_machine(2), {.policy = kOneSample, .pages = kPages128MiB});
    sim.place(0, kPages128MiB, 0);
    sim.add({.cpu = 0, .page = uniform(0, kPages128MiB)});
    sim.run_ms(5000);
    EXPECT_EQ(sim.pages_moved(), 0u);
    EXPECT_EQ(pages_by(sim, MoveRule::kChunk), 0u);
}

// ---- skew

TEST(Skew, HotPagesOfColdChunksMoveAloneAndNearlyAllLoadsGoToDram) {
    Simulator sim(published_machine(2), {.policy = {.freq_threshold = 2}, .pages = kPages128MiB});
    Random random(7);
    std::vector<uint64_t> hot;    // five pages a chunk have nineteen of twenty accesses
    for (uint64_t chunk = 0; chunk < 64; ++chunk) {
        const auto order = shuffled(chunk * kPagesPerChunk, kPagesPerChunk, random);
        hot.insert(hot.end(), order.begin(), order.begin() + 5);
    }
    const auto page = [&hot](Random& r) { return r() % 20 != 0 ? hot[r() % hot.size()] : r() % kPages128MiB; };
    for (uint16_t cpu : {0, 2}) sim.add({.cpu = cpu, .page = page});
    sim.run_ms(10000);
    sim.run_ms(5000);
    EXPECT_EQ(pages_by(sim, MoveRule::kChunk), 0u);
    EXPECT_LT(sim.pages_moved(), hot.size() + 320);
    EXPECT_GT(sim.dram_share(), 0.93);
    for (uint64_t page_number : hot) EXPECT_EQ(sim.pages_on(0, page_number, 1), 1u) << page_number;
}

TEST(Skew, ZipfWithinChunksMovesSinglePages) {
    Simulator sim(published_machine(2), {.policy = {.freq_threshold = 2}, .pages = kPages128MiB});
    Random random(7);
    for (uint16_t group = 0; group < 2; ++group) {
        std::vector<std::function<uint64_t(Random&)>> chunks;
        for (uint64_t chunk = 0; chunk < 32; ++chunk)
            chunks.push_back(
                zipf(shuffled((group * uint64_t{32} + chunk) * kPagesPerChunk, kPagesPerChunk, random), 1.6));
        sim.add({.cpu = group, .page = [chunks](Random& r) { return chunks[r() % chunks.size()](r); }});
    }
    sim.run_ms(30000);
    sim.run_ms(5000);
    EXPECT_EQ(pages_by(sim, MoveRule::kChunk), 0u);
    EXPECT_LT(sim.pages_moved(), kPages128MiB / 5);
    EXPECT_GT(sim.dram_share(), 0.80);
}

// ---- groups and shared pages

TEST(Groups, EachHalfGoesToTheNodeOfItsThreads) {
    Simulator sim(published_machine(4), {.policy = kOneSample, .pages = kPages128MiB});
    constexpr uint64_t kHalf = kPages128MiB / 2;
    for (uint16_t cpu = 0; cpu < 4; ++cpu) sim.add({.cpu = cpu, .page = uniform(cpu % 2 * kHalf, kHalf)});
    sim.run_ms(5000);
    EXPECT_GE(sim.share_on(0, 0, kHalf), 0.95);
    EXPECT_GE(sim.share_on(1, kHalf, kHalf), 0.95);
}

TEST(Groups, HalvesThatMeetInTheMiddleOfAChunkArePutRightPageByPage) {
    Simulator sim(published_machine(2), {.policy = kOneSample, .pages = 512});
    for (uint16_t cpu = 0; cpu < 2; ++cpu) sim.add({.cpu = cpu, .page = uniform(cpu * uint64_t{256}, 256)});
    sim.run_ms(5000);
    EXPECT_GE(sim.share_on(0, 0, 256), 0.95);
    EXPECT_GE(sim.share_on(1, 256, 256), 0.95);
}

TEST(Groups, SharedPagesMoveOnceAndStay) {
    Simulator sim(published_machine(4), {.policy = kOneSample, .pages = 8192});
    for (uint16_t cpu = 0; cpu < 4; ++cpu) sim.add({.cpu = cpu, .page = uniform(0, 8192)});
    sim.run_ms(30000);
    EXPECT_EQ(sim.pages_on(2, 0, 8192), 0u);
    EXPECT_EQ(sim.most_moves_of_a_page(), 1u);
    EXPECT_NEAR(sim.share_on(0, 0, 8192), 0.5, 0.1);
}

// ---- the rate limit

class Budget : public testing::TestWithParam<uint32_t> {};

TEST_P(Budget, IsReachedWithinFivePercentAndNeverExceededByMoreThanABatch) {
    const uint32_t rate = GetParam();
    Simulator sim(published_machine(4), {.policy = kOneSample,
                                         .pages = 524288,    // 2 GiB
                                         .rate_limit_mbps = rate,
                                         .page_ns = 2000,
                                         .seed = rate});
    for (uint16_t cpu : {0, 2})    // one node: few large calls
        sim.add({.cpu = cpu, .samples_per_second = 16000, .page = uniform(0, 524288)});
    sim.run_ms(12000);
    const auto& calls = sim.calls();
    ASSERT_FALSE(calls.empty());
    const TimeNs start = calls.front().time;
    ASSERT_LT(start - TimeNs{10 * kNsPerSecond}, static_cast<int64_t>(2 * kNsPerSecond));
    const auto bytes_until = [&](double seconds) {
        uint64_t bytes = 0;
        for (const auto& call : calls)
            bytes += static_cast<double>(call.time - start) < seconds * kNsPerSecond ? call.bytes : 0;
        return static_cast<double>(bytes) / kMiB;
    };
    constexpr double kBatchMiB = 8;
    for (double seconds : {5.0, 7.5, 10.0})    // after the first batch, which comes at once
        EXPECT_NEAR(bytes_until(seconds) - kBatchMiB / 2, rate * seconds,
                    std::max(0.05 * rate * seconds, kBatchMiB / 2));
    for (const auto& call : calls) {
        const double seconds = static_cast<double>(call.time - start) / kNsPerSecond;
        EXPECT_LE(bytes_until(seconds + 1e-9), rate * seconds + kBatchMiB + 1e-6);
    }
}
INSTANTIATE_TEST_SUITE_P(MiBPerSecond, Budget, testing::Values(8, 32, 128));

// ---- memory of the program and of the table

TEST(Memory, ForgottenMemoryStays) {
    Simulator sim(published_machine(2), {.policy = kOneSample, .pages = 8192});
    for (uint64_t page = 0; page < 8192; page += 197)    // too few in a chunk to look like a sweep
        sim.feed({.address = Simulator::address(page), .time = sim.now(), .node = NodeId{0}});
    sim.reuse(0, 4096);
    sim.run_ms(5000);
    EXPECT_EQ(sim.pages_on(0, 0, 4096), 0u);
    EXPECT_GT(sim.pages_on(0, 4096, 4096), 18u);
}

TEST(Memory, FreedAndReusedChunksComeHomeAgain) {
    Simulator sim(published_machine(2), {.policy = kOneSample, .pages = 8192});
    sim.add({.cpu = 0, .page = uniform(0, 8192)});
    for (int round = 0; round < 5; ++round) {
        sim.run_ms(2000);
        EXPECT_GE(sim.share_on(0, 0, 8192), 0.95) << round;
        sim.reuse(1024, 4096);
    }
}

TEST(Memory, ASmallTableForgetsTheColdAndKeepsTheHot) {
    // 128 MiB swept slowly and 8 MiB used all the time, in a table for 16 chunks.
    Simulator sim(published_machine(4), {.policy = kOneSample, .pages = kPages128MiB, .heat_chunks = 16});
    sim.add({.cpu = 0, .page = uniform(0, 2048)});
    sim.add({.cpu = 2, .samples_per_second = 50, .page = uniform(0, kPages128MiB)});
    sim.run_ms(10000);
    EXPECT_GT(sim.policy().evictions(), 100u);
    EXPECT_LE(sim.policy().heat().chunks(), 16u);
    EXPECT_EQ(sim.pages_on(0, 0, 2048), 2048u);
}

// The 14 bits of a page's time come round every 262 s. A page sampled once in about that time never is hot.
TEST(Memory, TimesThatCameRoundMakeNoHeat) {
    Simulator sim(published_machine(2), {.policy = {.freq_window_ms = 16383, .freq_threshold = 2}, .pages = 1024});
    sim.add({.cpu = 0, .samples_per_second = 20, .page = [](Random&) { return uint64_t{600}; }});
    for (int round = 0; round < 12; ++round) {
        for (uint64_t page = 0; page < 512; page += 9)
            sim.feed({.address = Simulator::address(page), .time = sim.now(), .node = NodeId{0}});
        for (uint64_t page = 700; page < 1024; page += 9)    // in the chunk that is sampled all the time
            sim.feed({.address = Simulator::address(page), .time = sim.now(), .node = NodeId{0}});
        sim.run_ms(262144 + static_cast<uint64_t>(round % 3) * 16);
    }
    EXPECT_EQ(sim.pages_moved(), 1u) << "page 600 alone";
    EXPECT_EQ(sim.pages_on(0, 600, 1), 1u);
}

// ---- the published run: 64 threads, 8 GiB, 2.1 M pages

TEST(Scale, EightGiBWith64ThreadsConvergesInTheTimeAndMemoryOfTheDesign) {
    constexpr uint64_t kPages = 2097152;
    constexpr uint16_t kThreads = 64;
    Simulator sim(published_machine(128), {.policy = kOneSample, .pages = kPages, .call_ns = 100000, .page_ns = 2000});
    for (uint16_t i = 0; i < kThreads; ++i)
        sim.add({.cpu = static_cast<uint16_t>(2 * i), .page = uniform(0, kPages)});    // all on node 0
    const auto wall = std::chrono::steady_clock::now();
    while (sim.share_on(0, 0, kPages) < 0.95 && sim.now() < TimeNs{60 * kNsPerSecond}) sim.run_ms(500);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - wall;
    const double seconds = static_cast<double>(sim.now() - TimeNs{10 * kNsPerSecond}) / kNsPerSecond;
    std::printf("95 %% of 8 GiB local after %.1f s, %.0f k samples, %zu calls; simulated in %.1f s\n", seconds,
                static_cast<double>(sim.samples()) / 1000, sim.calls().size(), took.count());
    EXPECT_GE(sim.share_on(0, 0, kPages), 0.95);
    EXPECT_LT(seconds, 15);
    EXPECT_GT(pages_by(sim, MoveRule::kChunk), 20 * pages_by(sim, MoveRule::kPage));
    EXPECT_LE(HeatTable::bytes_for(kPages / kPagesPerChunk), kPages * 17 / 4);
    EXPECT_EQ(sim.policy().evictions(), 0u);
}

}    // namespace
}    // namespace pghot::sim
