// SPDX-License-Identifier: Apache-2.0
#include "runtime/policy/job_shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <vector>

namespace pghot {
namespace {

constexpr uint64_t kBatch = 2 * kMiB;
constexpr auto kRelaxed = std::memory_order_relaxed;

struct RankSettings {
    uint64_t request = kBatch;
    uint64_t call_ns = 1000000;    // the kernel moves
    uint64_t late_ns = 200000;     // it wakes up to so much late
};

// Ranks of one job on a virtual clock: each asks, sleeps as it is told, moves, and asks again, as pghot-mover does.
class Node {
public:
    Node(size_t ranks, uint32_t rate_mbps, uint64_t seed) : rate_mbps_(rate_mbps), random_(seed) {
        for (size_t i = 0; i < ranks; ++i) add({});
    }
    size_t add(const RankSettings& settings) {
        const size_t slot = ranks_.size();
        board_->slots[slot].owner.store(job_owner(static_cast<int32_t>(slot + 1), 1), kRelaxed);
        board_->slots[slot].turn_ns.store(board_->turn_ns.load(kRelaxed), kRelaxed);
        board_->slots_used.store(static_cast<uint32_t>(slot + 1), kRelaxed);
        ranks_.emplace_back(*board_, slot, rate_mbps_, settings);
        ranks_.back().next = now_ + random_() % kNsPerMs;
        return slot;
    }
    void run_ms(uint64_t ms) {
        const TimeNs end = now_ + ms * kNsPerMs;
        for (;;) {
            const auto first = std::min_element(ranks_.begin(), ranks_.end(),
                                                [](const Rank& a, const Rank& b) { return a.next < b.next; });
            if (first->next >= end) break;
            now_ = first->next;
            ask(*first);
        }
        now_ = end;
    }
    // SIGKILL: whatever it had written stays.
    void kill(size_t rank) { ranks_[rank].next = TimeNs{UINT64_MAX}; }
    // It has nothing to move, having given up what it waited for, and then has again.
    void rest(size_t rank) {
        ranks_[rank].budget.give_up();
        kill(rank);
    }
    void resume(size_t rank) { ranks_[rank].next = now_; }
    // SIGSTOP and SIGCONT: it does not know that time passes.
    void stop_for_ms(size_t rank, uint64_t ms) { ranks_[rank].next = now_ + ms * kNsPerMs; }
    bool is_alive(size_t rank) const { return ranks_[rank].next.ns != UINT64_MAX; }
    RankSettings& settings(size_t rank) { return ranks_[rank].settings; }

    uint64_t bytes(size_t rank) const { return ranks_[rank].bytes; }
    uint64_t total() const {
        uint64_t sum = 0;
        for (const Rank& rank : ranks_) sum += rank.bytes;
        return sum;
    }
    uint64_t longest_wait_ns() const { return longest_wait_ns_; }
    void forget_waits() { longest_wait_ns_ = 0; }
    double allowed(uint64_t ms) const { return static_cast<double>(ms) / 1000 * rate_mbps_ * kMiB; }
    TimeNs now() const { return now_; }
    size_t ranks() const { return ranks_.size(); }
    uint64_t asks() const { return asks_; }

private:
    struct Rank {
        Rank(JobBoard& board, size_t slot, uint32_t rate_mbps, const RankSettings& with)
            : budget(&board, slot, rate_mbps, kBatch), settings(with) {}
        FairBudget budget;
        RankSettings settings;
        TimeNs next{};
        TimeNs wants_since{};
        uint64_t bytes = 0;
    };
    void ask(Rank& rank) {
        if (rank.wants_since.ns == 0) rank.wants_since = now_;
        ++asks_;
        const BudgetAnswer answer = rank.budget.take(rank.settings.request, now_);
        if (!answer.granted) {
            ASSERT_GT(answer.retry_at, now_);
            rank.next = answer.retry_at + random_() % (rank.settings.late_ns + 1);
            return;
        }
        longest_wait_ns_ = std::max(longest_wait_ns_, static_cast<uint64_t>(now_ - rank.wants_since));
        rank.wants_since = {};
        rank.bytes += rank.settings.request;
        rank.next = now_ + rank.settings.call_ns;
    }

    std::unique_ptr<JobBoard> board_ = std::make_unique<JobBoard>();
    uint32_t rate_mbps_;
    std::mt19937_64 random_;
    std::deque<Rank> ranks_;
    TimeNs now_{100 * kNsPerSecond};
    uint64_t longest_wait_ns_ = 0;
    uint64_t asks_ = 0;
};

double smallest_share(const Node& node) {
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < node.ranks(); ++i) least = std::min(least, node.bytes(i));
    return static_cast<double>(least) / static_cast<double>(node.total()) * static_cast<double>(node.ranks());
}
double largest_share(const Node& node) {
    uint64_t most = 0;
    for (size_t i = 0; i < node.ranks(); ++i) most = std::max(most, node.bytes(i));
    return static_cast<double>(most) / static_cast<double>(node.total()) * static_cast<double>(node.ranks());
}

TEST(FairBudget, AloneItIsTheProcesssOwn) {
    FairBudget budget(nullptr, 0, 128, kBatch);
    const TimeNs start{kNsPerSecond};
    EXPECT_TRUE(budget.take(kBatch, start).granted);
    const BudgetAnswer refused = budget.take(kBatch, start + 1);
    EXPECT_FALSE(refused.granted);
    EXPECT_EQ(refused.retry_at - start, static_cast<int64_t>(kNsPerSecond / 64));
    budget.give_up();
}

TEST(FairBudget, RanksThatWantMoreThanThereIsGetTheSameAndTheRateIsKept) {
    for (const size_t ranks : {2u, 3u, 4u, 16u, 64u, 128u}) {
        const auto rate = static_cast<uint32_t>(64 * ranks);
        Node node(ranks, rate, ranks);
        constexpr uint64_t kMs = 10000;
        node.run_ms(kMs);
        EXPECT_GE(smallest_share(node), 0.97) << ranks;
        EXPECT_LE(largest_share(node), 1.03) << ranks;
        EXPECT_GE(static_cast<double>(node.total()), 0.98 * node.allowed(kMs)) << ranks;
        EXPECT_LE(static_cast<double>(node.total()), node.allowed(kMs) + kBatch) << ranks;
        // Nobody polls: at most a few looks for each grant.
        EXPECT_LE(node.asks(), 6 * node.total() / kBatch) << ranks;
    }
}

TEST(FairBudget, SmallRequestsGetAsMuchAsLargeOnes) {
    Node node(0, 128, 1);
    for (const uint64_t request : {kBatch, 16 * kPageBytes, kBatch / 2, 64 * kPageBytes})
        node.add({.request = request, .call_ns = 100000});
    node.run_ms(20000);
    EXPECT_GE(smallest_share(node), 0.9);
    EXPECT_LE(largest_share(node), 1.1);
    EXPECT_GE(static_cast<double>(node.total()), 0.98 * node.allowed(20000));
}

TEST(FairBudget, WhoWakesLateGetsItsShareAllTheSame) {
    Node node(4, 128, 7);
    node.settings(0).late_ns = 3 * kNsPerMs;    // less than a quarter of a batch's time of 16 ms
    node.run_ms(20000);
    EXPECT_GE(smallest_share(node), 0.95);
    EXPECT_GE(static_cast<double>(node.total()), 0.98 * node.allowed(20000));
}

TEST(FairBudget, AnIdleRanksShareIsTheOthersAtOnce) {
    Node node(4, 256, 3);
    node.run_ms(2000);
    for (const size_t idle : {1u, 2u, 3u}) node.rest(idle);
    const uint64_t before = node.bytes(0);
    node.run_ms(2000);
    EXPECT_GE(static_cast<double>(node.bytes(0) - before), 0.98 * node.allowed(2000));
}

TEST(FairBudget, WhoComesBackHasSavedUpAtMostTwoBatches) {
    Node node(2, 128, 4);
    node.run_ms(1000);
    node.rest(1);
    node.run_ms(3600 * 1000);
    const uint64_t first = node.bytes(0), second = node.bytes(1);
    node.resume(1);
    node.run_ms(1000);
    const auto half = node.allowed(1000) / 2;
    EXPECT_NEAR(static_cast<double>(node.bytes(1) - second), half, 3 * kBatch);
    EXPECT_NEAR(static_cast<double>(node.bytes(0) - first), half, 3 * kBatch);
}

TEST(FairBudget, AStoppedRankHoldsNobodyUpAndTakesNothingBackForTheTime) {
    Node node(3, 192, 5);
    node.run_ms(1000);
    node.stop_for_ms(2, 10000);
    const uint64_t before = node.total();
    node.run_ms(10000);
    EXPECT_GE(static_cast<double>(node.total() - before), 0.98 * node.allowed(10000));
    const uint64_t stopped = node.bytes(2);
    node.run_ms(1000);
    EXPECT_NEAR(static_cast<double>(node.bytes(2) - stopped), node.allowed(1000) / 3, 4 * kBatch);
}

// At any moment any number of ranks is killed, in the middle of waiting too; new ones take their place now and then.
TEST(FairBudget, RanksThatDieBlockNobody) {
    const auto seed = std::random_device{}();
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    for (int round = 0; round < 60; ++round) {
        const size_t ranks = 2 + random() % 127;
        const auto rate = static_cast<uint32_t>(64 + random() % 4096);
        Node node(ranks, rate, random());
        node.run_ms(random() % 500);
        const size_t deaths = 1 + random() % (ranks - 1);
        for (size_t i = 0; i < deaths; ++i) node.kill(random() % ranks);
        node.resume(0);                            // somebody lives
        node.run_ms(200 + 8000 * 2 / rate * 4);    // the dead are noticed: 50 ms after they were to ask again
        node.forget_waits();
        const uint64_t before = node.total();
        constexpr uint64_t kMs = 2000;
        node.run_ms(kMs);
        size_t living = 0;
        for (size_t i = 0; i < ranks; ++i) living += node.is_alive(i);
        const double moved = static_cast<double>(node.total() - before);
        const double can_ask_for =
            static_cast<double>(living) * kBatch * kMs / 1.3;    // a call takes 1 ms, and the waking
        EXPECT_GE(moved, 0.97 * std::min(node.allowed(kMs) - kBatch, can_ask_for))
            << "round " << round << ": " << living << " of " << ranks << " live, rate " << rate;
        EXPECT_LE(moved, node.allowed(kMs) + 2 * kBatch) << "round " << round;
        const double turn_ns = static_cast<double>(living) * kBatch / (static_cast<double>(rate) * kMiB) * kNsPerSecond;
        // While the dead were counted on, some took more than their part, and pay it back now.
        EXPECT_LE(static_cast<double>(node.longest_wait_ns()), 4 * turn_ns + 50 * kNsPerMs) << "round " << round;
    }
}

// ---- the samplers' CPU time

class SamplerShares : public testing::Test {
protected:
    void rank_uses(size_t slot, uint64_t ns, TimeNs alive = kNow) {
        board->slots[slot].owner.store(slot + 1, kRelaxed);
        board->slots[slot].alive_ns.store(alive.ns, kRelaxed);
        board->slots[slot].sampler_ns.store(ns, kRelaxed);
        board->slots_used.store(std::max<uint32_t>(board->slots_used.load(), static_cast<uint32_t>(slot + 1)));
    }
    static constexpr TimeNs kNow{1000 * kNsPerSecond};
    static constexpr uint64_t kLimit = 10000000;
    std::unique_ptr<JobBoard> board = std::make_unique<JobBoard>();
};

TEST_F(SamplerShares, AloneAllIsOurs) {
    EXPECT_EQ(sampler_share_ns(*board, 0, kLimit, kNow), kLimit);
    rank_uses(0, 5000000);
    EXPECT_EQ(sampler_share_ns(*board, 0, kLimit, kNow), kLimit) << "what we use ourselves takes nothing away";
}

TEST_F(SamplerShares, WhatOthersLeaveIsOurs) {
    rank_uses(0, 0);
    rank_uses(1, 1000000);
    rank_uses(2, 2000000);
    EXPECT_EQ(sampler_share_ns(*board, 0, kLimit, kNow), kLimit - 3000000);
}

TEST_F(SamplerShares, WhoUsesMoreThanItsPartDoesNotTakeOurs) {
    rank_uses(0, 0);
    rank_uses(1, 90000000);
    rank_uses(2, 1000000);
    EXPECT_EQ(sampler_share_ns(*board, 0, kLimit, kNow), (kLimit - 1000000) / 2);
}

TEST_F(SamplerShares, RanksWithoutASignOfLifeAreNotCounted) {
    rank_uses(0, 0);
    rank_uses(1, 90000000, TimeNs{kNow.ns - 6 * kNsPerSecond});
    EXPECT_EQ(sampler_share_ns(*board, 0, kLimit, kNow), kLimit);
    EXPECT_EQ(ranks_alive(*board, kNow), 1u);
    rank_uses(1, 90000000, TimeNs{kNow.ns - 4 * kNsPerSecond});
    EXPECT_EQ(sampler_share_ns(*board, 0, kLimit, kNow), kLimit / 2);
    EXPECT_EQ(ranks_alive(*board, kNow), 2u);
}

TEST_F(SamplerShares, AreNeverMoreThanThereIsWhenAllTakeThem) {
    const auto seed = std::random_device{}();
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    for (int round = 0; round < 200; ++round) {
        const size_t ranks = 1 + random() % 128;
        std::vector<uint64_t> wants(ranks);
        for (size_t i = 0; i < ranks; ++i) rank_uses(i, wants[i] = random() % (kLimit / 8));
        board->slots_used.store(static_cast<uint32_t>(ranks));
        // Each in turn takes what it wants of its share, until nothing changes.
        for (int turn = 0; turn < 3; ++turn)
            for (size_t i = 0; i < ranks; ++i)
                rank_uses(i, std::min(wants[i], sampler_share_ns(*board, i, kLimit, kNow)));
        uint64_t sum = 0;
        for (size_t i = 0; i < ranks; ++i) sum += board->slots[i].sampler_ns.load();
        EXPECT_LE(sum, kLimit + ranks) << round;
    }
}

}    // namespace
}    // namespace pghot
