// SPDX-License-Identifier: Apache-2.0
//
// What holds for policy, budget and mover together, whatever the program does. TEST_SEED=N repeats a failure.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "runtime/sources/recording.h"
#include "runtime/sources/replay.h"
#include "tests/sim/scenario.h"
#include "tests/unit/seeds.h"

namespace pghot::sim {
namespace {

using test::for_each_seed;

constexpr uint64_t kBatchBytes = 8 * kMiB;

// No window of any length has more bytes than the rate gives, a batch that lateness or idling saved, and the batch
// under way. `calls` in order of time.
void expect_within_budget(const std::vector<Simulator::Moved>& calls, uint32_t rate_mbps) {
    const double bytes_a_ns = static_cast<double>(rate_mbps) * kMiB / kNsPerSecond;
    double before = 0;
    double lowest = 0;    // of bytes so far less what the rate gave, over all starts of a window
    for (const auto& call : calls) {
        const double given = bytes_a_ns * static_cast<double>(call.time - calls.front().time);
        lowest = std::min(lowest, before - given);
        before += static_cast<double>(call.bytes);
        ASSERT_LE(before - given - lowest, 2.0 * kBatchBytes + 1) << "at " << call.time.ns;
    }
}

// One to five processes that use their memory in all kinds of ways, and others who move it.
struct Mixture {
    Random random;
    uint32_t rate;
    std::atomic<uint64_t> budget_word{0};
    std::vector<std::unique_ptr<Simulator>> ranks;

    explicit Mixture(uint64_t seed) : random(seed), rate(static_cast<uint32_t>(8 << random() % 8)) {
        const uint64_t count = 1 + random() % 5;
        for (uint64_t rank = 0; rank < count; ++rank) {
            const uint64_t pages = 4096 + random() % 16384;
            const Settings settings{.policy = {.freq_threshold = static_cast<uint8_t>(1 + random() % 2)},
                                    .pages = pages,
                                    .rate_limit_mbps = rate,
                                    .heat_chunks = random() % 3 == 0 ? pages / 1024 : 0,
                                    .budget_word = &budget_word,
                                    .call_ns = random() % 1000000,
                                    .page_ns = random() % 4000,
                                    .busy_share = random() % 2 == 0 ? 0 : 0.05,
                                    .seed = random()};
            auto& simulator = *ranks.emplace_back(std::make_unique<Simulator>(published_machine(8), settings));
            for (uint64_t thread = 0; thread < 1 + random() % 3; ++thread) simulator.add(random_thread(pages));
        }
    }
    Thread random_thread(uint64_t pages) {
        const uint64_t first = random() % (pages / 2);
        const uint64_t count = 1 + random() % (pages - first);
        std::function<uint64_t(Random&)> page = uniform(first, count);
        if (random() % 3 == 0) page = sweep(first, count, 1 + static_cast<double>(random() % 20));
        if (random() % 3 == 0) page = power_law(first, count, 1.1, 1 + random() % 3);
        return {.cpu = static_cast<uint16_t>(random() % 8), .page = page};
    }
    void run_ms(uint64_t ms) {
        for (uint64_t past = 0; past < ms; ++past)
            for (auto& rank : ranks) rank->run_ms(1);
    }
    std::vector<Simulator::Moved> calls() const {
        std::vector<Simulator::Moved> all;
        for (const auto& rank : ranks) all.insert(all.end(), rank->calls().begin(), rank->calls().end());
        std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.time < b.time; });
        return all;
    }
};

TEST(SimProperties, RanksTogetherKeepTheBudgetInEveryWindow) {
    for_each_seed({1, 2, 3, 4, 5, 6}, [](uint64_t seed) {
        Mixture job(seed);
        for (int round = 0; round < 8; ++round) {
            job.run_ms(1000);
            for (auto& rank : job.ranks)    // idle for a while, or its memory is pushed down
                if (job.random() % 3 == 0) rank->place(0, 1024 + job.random() % 2048, 2);
        }
        const auto calls = job.calls();
        ASSERT_GT(calls.size(), 2u);
        expect_within_budget(calls, job.rate);
    });
}

TEST(SimProperties, PagesMoveAsOftenAsSomeoneMovedThemAway) {
    for_each_seed({11, 12, 13, 14}, [](uint64_t seed) {
        Mixture job(seed);
        unsigned times_away = 0;
        for (; times_away < 3; ++times_away) {
            job.run_ms(3000);
            for (auto& rank : job.ranks) {
                EXPECT_LE(rank->most_moves_of_a_page(), times_away + 1);
                rank->place(0, 4096, 2);
            }
        }
    });
}

// A recording of anything leads to the same moves each time that it is replayed.
TEST(SimProperties, AReplayGivesTheSameMovesEachTime) {
    for_each_seed({21, 22, 23}, [](uint64_t seed) {
        Random random(seed);
        std::vector<std::byte> file;
        const auto append = [](void* self, std::span<const std::byte> bytes) {
            auto& bytes_of_file = *static_cast<std::vector<std::byte>*>(self);
            bytes_of_file.insert(bytes_of_file.end(), bytes.begin(), bytes.end());
            return true;
        };
        std::vector<std::byte> buffer(4096);
        RecordingWriter writer(buffer, {append, &file});
        writer.begin(TimeNs{});
        TimeNs time{};
        for (int i = 0; i < 20000; ++i) {
            time = time + random() % (kNsPerMs / 2);
            const uint64_t page = random() % 2 != 0 ? random() % 4096 : random() % 64 * 7;
            writer.write({.address = Simulator::address(page),
                          .time = time,
                          .tid = 1,
                          .node = NodeId{static_cast<int16_t>(page / 2048)},
                          .served_by = static_cast<ServedBy>(random() % 4)});
        }
        writer.flush();
        const auto replay = [&] {
            Simulator simulator(published_machine(2), {.policy = {.freq_threshold = 2}, .pages = 4096, .seed = 5});
            std::vector<Sample> order(65536);
            ReplaySource source(file, order);
            EXPECT_TRUE(source.start(simulator.now()).ok());
            while (!source.finished()) {
                simulator.run_ms(50);
                source.drain(simulator.now(), [&](const Sample& sample) { simulator.feed(sample); });
            }
            simulator.run_ms(2000);
            std::vector<std::pair<uint64_t, uint64_t>> calls;
            for (const auto& call : simulator.calls()) calls.emplace_back(call.time.ns, call.bytes);
            std::vector<int16_t> nodes;
            for (uint64_t page = 0; page < 4096; ++page)
                nodes.push_back(
                    static_cast<int16_t>(simulator.pages_on(0, page, 1) + 2 * simulator.pages_on(1, page, 1)));
            return std::pair{calls, nodes};
        };
        const auto first = replay();
        EXPECT_FALSE(first.first.empty());
        EXPECT_EQ(first, replay());
    });
}

}    // namespace
}    // namespace pghot::sim
