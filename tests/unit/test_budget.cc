// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "runtime/policy/token_budget.h"

namespace pghot {
namespace {

constexpr uint64_t kBatch = 2 * kMiB;

TEST(TokenBudget, ABatchTakesTheTimeOfItsBytes) {
    std::atomic<uint64_t> word{0};
    TokenBudget budget(word, 128, kBatch);
    const TimeNs start{kNsPerSecond};
    EXPECT_TRUE(budget.take(kBatch, start).granted);
    const auto refused = budget.take(kBatch, start + 1);
    EXPECT_FALSE(refused.granted);
    EXPECT_EQ(refused.retry_at - start, static_cast<int64_t>(kNsPerSecond / 64));    // 2 MiB of 128 MiB a second
    EXPECT_FALSE(budget.take(1, TimeNs{refused.retry_at.ns - 1}).granted);
    EXPECT_TRUE(budget.take(1, refused.retry_at).granted);
}

TEST(TokenBudget, BudgetBelowOnePagePerTickDelaysButNeverDrops) {
    std::atomic<uint64_t> word{0};
    TokenBudget budget(word, 1, kPageBytes);
    unsigned pages = 0;
    for (uint64_t ms = 0; ms <= 1000; ++ms) pages += budget.take(kPageBytes, TimeNs{ms * kNsPerMs + 1}).granted;
    EXPECT_EQ(pages, 256u + 1);    // one MiB, a page every 3.9 ms, and the first page at once
}

TEST(TokenBudget, ARequestLargerThanABatchDelaysWhatFollows) {
    std::atomic<uint64_t> word{0};
    TokenBudget budget(word, 8, kPageBytes);
    EXPECT_TRUE(budget.take(8 * kMiB, TimeNs{1}).granted);
    EXPECT_EQ(budget.take(kPageBytes, TimeNs{2}).retry_at, TimeNs{kNsPerSecond + 1});
}

TEST(TokenBudget, IdleTimeSavesUpOneBatchOnly) {
    std::atomic<uint64_t> word{0};
    TokenBudget budget(word, 100, kBatch);
    EXPECT_TRUE(budget.take(kBatch, TimeNs{1}).granted);
    const TimeNs later{3600 * kNsPerSecond};
    EXPECT_TRUE(budget.take(kBatch, later).granted);    // what was saved
    EXPECT_TRUE(budget.take(kBatch, later).granted);    // the batch that every caller may be ahead
    EXPECT_FALSE(budget.take(1, later).granted);
}

TEST(TokenBudget, LatenessIsGivenBack) {
    std::atomic<uint64_t> word{0};
    TokenBudget budget(word, 64, kBatch);
    const uint64_t cost = budget.cost_ns(kBatch);
    TimeNs now{kNsPerSecond};
    uint64_t granted = 0;
    for (unsigned i = 0; i < 1000; ++i) {
        const auto answer = budget.take(kBatch, now);
        granted += answer.granted ? kBatch : 0;
        now = answer.granted ? now : answer.retry_at + cost / 3;    // a third of a batch late, always
    }
    const double seconds = static_cast<double>(now - TimeNs{kNsPerSecond}) / kNsPerSecond;
    EXPECT_NEAR(static_cast<double>(granted) / kMiB / seconds, 64, 64 * 0.01);
}

TEST(TokenBudget, CostNeverRoundsDown) {
    std::atomic<uint64_t> word{0};
    for (uint32_t rate : {1u, 3u, 1000u, 65536u, 1048576u}) {
        TokenBudget budget(word, rate, kPageBytes);
        for (uint64_t bytes : {uint64_t{1}, kPageBytes, kBatch, uint64_t{1} << 42}) {
            const auto exact = static_cast<long double>(bytes) * 1e9L / (static_cast<long double>(rate) * kMiB);
            EXPECT_GE(static_cast<long double>(budget.cost_ns(bytes)), exact);
            EXPECT_LT(static_cast<long double>(budget.cost_ns(bytes)), exact + 1);
        }
    }
}

// Callers that come at any time, with requests of any size up to a batch, at any rate.
TEST(TokenBudget, KeepsTheRateWhateverTheLoad) {
    const auto seed = std::random_device{}();
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    for (int round = 0; round < 300; ++round) {
        const auto rate = static_cast<uint32_t>(1 + random() % 65536);
        const uint64_t batch = (1 + random() % 2048) * kPageBytes;
        std::atomic<uint64_t> word{0};
        TokenBudget budget(word, rate, batch);
        const bool always_late = random() % 2 == 0;
        TimeNs now{1 + random() % (uint64_t{1} << 50)};
        const TimeNs start = now;
        uint64_t bytes = 0;
        uint64_t requested = 0;
        for (int i = 0; i < 3000; ++i) {
            const uint64_t request = (1 + random() % (batch / kPageBytes)) * kPageBytes;
            const auto answer = budget.take(request, now);
            if (answer.granted) {
                bytes += request;
                ++requested;
                const uint64_t elapsed_cost = static_cast<uint64_t>(now - start) + budget.cost_ns(batch);
                // Rounding up costs at most 1 ns a grant; it only ever makes the rate smaller.
                ASSERT_LE(budget.cost_ns(bytes), elapsed_cost + 1) << "above by more than a batch, round " << round;
            } else {
                ASSERT_GT(answer.retry_at, now);
                now = answer.retry_at + (always_late ? random() % (budget.cost_ns(batch) + 1) : 0);
            }
        }
        // There was always work and nobody was later than a batch: the rate is reached.
        const auto elapsed = static_cast<double>(now - start);
        EXPECT_GE(static_cast<double>(budget.cost_ns(bytes) + requested + 2 * budget.cost_ns(batch)), 0.95 * elapsed)
            << "rate " << rate << " batch " << batch << " round " << round;
    }
}

TEST(TokenBudget, ThreadsShareOneBudget) {
    std::atomic<uint64_t> word{0};
    std::atomic<uint64_t> clock{1};
    std::atomic<uint64_t> granted{0};
    constexpr uint64_t kSteps = 400000;
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            TokenBudget budget(word, 1000, kPageBytes);
            for (;;) {
                const uint64_t now = clock.fetch_add(50, std::memory_order_relaxed);
                if (now > kSteps * 50) return;
                if (budget.take(kPageBytes, TimeNs{now}).granted) granted.fetch_add(1, std::memory_order_relaxed);
            }
        });
    for (auto& thread : threads) thread.join();
    TokenBudget budget(word, 1000, kPageBytes);
    const uint64_t most = kSteps * 50 / budget.cost_ns(kPageBytes) + 1;
    EXPECT_LE(granted.load(), most + 1);    // clock steps may be seen out of order by one batch
    EXPECT_GE(granted.load(), most * 95 / 100);
}

}    // namespace
}    // namespace pghot
