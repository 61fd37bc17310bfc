// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "runtime/migrate/page_mover.h"

namespace pghot {
namespace {

constexpr uintptr_t kBase = 0x7f0000000000;
constexpr uintptr_t page(unsigned index) { return kBase + uintptr_t{index} * kPageBytes; }

// Nodes 0 and 1 are DRAM, 2 is the lower tier; distances as the published machine.
Topology three_nodes() {
    Topology topology;
    topology.node_count = 3;
    for (unsigned node = 0; node < 3; ++node) topology.nodes[node] = {.online_memory = true, .allowed = true};
    topology.nodes[0].has_cpus = topology.nodes[1].has_cpus = true;
    topology.nodes[2].lower_tier = true;
    const uint8_t distances[3][3] = {{10, 12, 50}, {12, 10, 50}, {254, 254, 10}};
    for (unsigned from = 0; from < 3; ++from)
        for (unsigned to = 0; to < 3; ++to) topology.distance[from][to] = distances[from][to];
    return topology;
}

// move_pages as Linux 6.12 answers, on a table of pages: a page that stays behind makes the call return the count and
// write no status at all, while the others of its batch have moved.
class FakeKernel final : public MoveWorld {
public:
    std::map<uintptr_t, int> node;                // where each present page is
    std::set<uintptr_t> pinned;                   // stays behind
    std::map<uintptr_t, int> refuses;             // page -> status that it gets instead of moving
    std::map<uintptr_t, unsigned> split_until;    // huge page -> how many of its base pages find room
    std::map<uintptr_t, uintptr_t> folio;         // page -> another page that the kernel moves with it
    std::map<uintptr_t, uint64_t> policy;         // page -> allowed targets; absent: every node
    std::map<int16_t, uint64_t> room{{0, 1ull << 40}, {1, 1ull << 40}, {2, 1ull << 40}, {3, 1ull << 40}};
    std::map<std::pair<int, int>, uint64_t> went;    // from, to -> bytes
    uint32_t generation = 0;
    long fail_moves_with = 0;
    long fail_queries_with = 0;
    unsigned moves = 0, queries = 0, policy_questions = 0;
    uint64_t call_ns = 0;    // what a moving call takes
    std::vector<size_t> call_sizes;

    long move_pages(std::span<void* const> pages, const int* targets, int* statuses) override {
        return targets == nullptr ? query(pages, statuses) : move(pages, targets, statuses);
    }
    uint64_t targets_of(uintptr_t address, MoveKind) override {
        ++policy_questions;
        const auto known = policy.find(address);
        return known == policy.end() ? 0b1111 : known->second;
    }
    uint32_t generation_of(uintptr_t) override { return generation; }
    uint64_t room_on(NodeId wanted) override { return room[wanted.value]; }
    void moved(NodeId from, NodeId to, uint64_t bytes) override { went[{from.value, to.value}] += bytes; }
    TimeNs now() override { return TimeNs{++clock_}; }
    void wait_ns(uint64_t ns) { clock_ += ns; }

private:
    static uintptr_t address(void* page) { return reinterpret_cast<uintptr_t>(page); }
    long query(std::span<void* const> pages, int* statuses) {
        ++queries;
        if (fail_queries_with != 0) return fail_queries_with;
        for (size_t i = 0; i < pages.size(); ++i) {
            const auto found = node.find(address(pages[i]));
            statuses[i] = found == node.end() ? -ENOENT : found->second;
        }
        return 0;
    }
    long move(std::span<void* const> pages, const int* targets, int* statuses) {
        ++moves;
        clock_ += call_ns;
        call_sizes.push_back(pages.size());
        if (fail_moves_with != 0) return fail_moves_with;
        long behind = 0;
        for (size_t i = 0; i < pages.size(); ++i) behind += pinned.count(address(pages[i]));
        for (size_t i = 0; i < pages.size(); ++i) {
            const uintptr_t at = address(pages[i]);
            if (pinned.count(at) != 0) continue;
            const auto refused = refuses.find(at);
            if (refused == refuses.end()) move_folio(at, targets[i]);
            if (split_until.count(at) != 0) return move_parts(at, targets[i]);
            if (behind == 0) statuses[i] = refused == refuses.end() ? targets[i] : refused->second;
        }
        return behind;
    }
    // No 2 MiB in one piece: base page by base page, until there is no room at all.
    long move_parts(uintptr_t at, int target) {
        for (unsigned i = 0; i < split_until[at]; ++i) node[at + i * kPageBytes] = target;
        return -ENOMEM;
    }
    void move_folio(uintptr_t at, int target) {
        node[at] = target;
        for (const auto& [each, head] : folio)
            if (head == at) node[each] = target;
    }
    uint64_t clock_ = 0;
};

class PageMoverTest : public testing::Test {
protected:
    void pages_on(int where, unsigned first, unsigned count) {
        for (unsigned i = first; i < first + count; ++i) kernel.node[page(i)] = where;
    }
    Move plan(unsigned first, unsigned count, int16_t target = 0, MoveRule rule = MoveRule::kChunk) {
        planned += count;
        return Move{page(first), count, NodeId{target}, rule, 0, TimeNs{1}};
    }
    Move demotion(unsigned first, unsigned count, int16_t from = -1, int16_t target = -1) {
        Move move = plan(first, count, target);
        move.kind = MoveKind::kDemote;
        move.from = NodeId{from};
        return move;
    }
    Move rehoming(unsigned first, unsigned count, int16_t target) {
        Move move = plan(first, count, target);
        move.kind = MoveKind::kRehome;
        return move;
    }
    PageMover::Report report() { return on_outcome; }
    bool add(const Move& move) { return mover->add(move, on_outcome); }
    void execute() { mover->execute(on_outcome); }
    unsigned pages_with(PageOutcome outcome) {
        unsigned pages = 0;
        for (const MoveOutcome& each : outcomes) pages += each.outcome == outcome ? each.pages : 0;
        return pages;
    }
    uint64_t counter(Counter which) { return counters.get(which); }
    // Every planned page has exactly one fate.
    void TearDown() override {
        uint64_t fates = 0;
        for (Counter each :
             {Counter::pgpromote_success, Counter::pgdemote_success, Counter::numa_pages_migrated,
              Counter::pages_at_target, Counter::pages_elsewhere, Counter::pages_absent, Counter::pages_stale,
              Counter::pages_expired, Counter::pgpromote_fail, Counter::pgdemote_fail, Counter::numa_pages_fail})
            fates += counter(each);
        EXPECT_EQ(fates, planned);
        unsigned reported = 0;
        for (const MoveOutcome& each : outcomes) reported += each.pages;
        EXPECT_EQ(reported, planned);
        EXPECT_TRUE(mover->empty());
    }

    Topology topology = three_nodes();
    FakeKernel kernel;
    Counters counters;
    std::vector<MoveOutcome> outcomes;
    std::function<void(const MoveOutcome&)> on_outcome = [this](const MoveOutcome& each) { outcomes.push_back(each); };
    std::unique_ptr<PageMover> mover = std::make_unique<PageMover>(topology, kernel, counters);
    uint64_t planned = 0;
};

TEST_F(PageMoverTest, AWholeChunkMovesInOneCall) {
    pages_on(2, 0, 512);
    ASSERT_TRUE(add(plan(0, 512)));
    EXPECT_EQ(mover->bytes(), kChunkBytes);
    execute();
    EXPECT_EQ(kernel.moves, 1u);
    EXPECT_EQ(counter(Counter::pgpromote_success), 512u);
    EXPECT_EQ(counter(Counter::promoted_bytes), kChunkBytes);
    ASSERT_EQ(outcomes.size(), 1u) << "neighbours with the same fate are one outcome";
    EXPECT_EQ(outcomes[0].node, NodeId{0});
}

TEST_F(PageMoverTest, SinglePagesOfOneTargetShareACall) {
    pages_on(2, 0, 64);
    for (unsigned i = 0; i < 64; i += 2) ASSERT_TRUE(add(plan(i, 1, 0, MoveRule::kPage)));
    execute();
    EXPECT_EQ(kernel.call_sizes, std::vector<size_t>{32});
    EXPECT_EQ(counter(Counter::pgpromote_success), 32u);
}

TEST_F(PageMoverTest, PagesThatAreHomeAlreadyAreNotSubmitted) {
    pages_on(2, 0, 4);
    pages_on(1, 4, 4);
    ASSERT_TRUE(add(plan(0, 12)));
    EXPECT_EQ(mover->pages(), 4u);
    execute();
    EXPECT_EQ(pages_with(PageOutcome::kPromoted), 4u);
    EXPECT_EQ(pages_with(PageOutcome::kAtTarget), 4u);
    EXPECT_EQ(pages_with(PageOutcome::kAbsent), 4u);
}

TEST_F(PageMoverTest, OnePinnedPageHoldsNobodyElseUp) {
    pages_on(2, 0, 512);
    kernel.pinned.insert(page(100));
    ASSERT_TRUE(add(plan(0, 512)));
    execute();
    EXPECT_EQ(pages_with(PageOutcome::kPromoted), 511u);
    EXPECT_EQ(pages_with(PageOutcome::kBusy), 1u);
    EXPECT_EQ(counter(Counter::pgpromote_fail_busy), 1u);
    EXPECT_EQ(kernel.moves, 2u) << "one more try, then a cool-down";
}

TEST_F(PageMoverTest, EveryStatusOfTheKernelHasItsFate) {
    pages_on(2, 0, 8);
    kernel.refuses = {{page(0), -ENOENT}, {page(1), -EFAULT}, {page(2), -EACCES},
                      {page(3), -EBUSY},  {page(4), -ENOMEM}, {page(5), -EINVAL}};
    ASSERT_TRUE(add(plan(0, 8)));
    execute();
    EXPECT_EQ(counter(Counter::pgpromote_success), 2u);
    EXPECT_EQ(counter(Counter::pgpromote_fail), 6u);
    EXPECT_EQ(counter(Counter::pgpromote_fail_fault), 2u);
    EXPECT_EQ(counter(Counter::pgpromote_fail_access), 1u);
    EXPECT_EQ(counter(Counter::pgpromote_fail_busy), 1u);
    EXPECT_EQ(counter(Counter::pgpromote_fail_nomem), 1u);
    EXPECT_EQ(counter(Counter::pgpromote_fail_other), 1u);
    EXPECT_EQ(pages_with(PageOutcome::kRefused), 1u);
    EXPECT_EQ(pages_with(PageOutcome::kBusy), 2u) << "shared pages are tried again";
}

struct Failure {
    long result;
    Counter counter;
    PageOutcome outcome;
};
class PageMoverFailure : public PageMoverTest, public testing::WithParamInterface<Failure> {};

TEST_P(PageMoverFailure, ACallThatFailsIsNotRepeated) {
    pages_on(2, 0, 16);
    kernel.fail_moves_with = GetParam().result;
    ASSERT_TRUE(add(plan(0, 16)));
    execute();
    EXPECT_EQ(kernel.moves, 1u);
    EXPECT_EQ(counter(GetParam().counter), 16u);
    EXPECT_EQ(pages_with(GetParam().outcome), 16u);
}
INSTANTIATE_TEST_SUITE_P(Errno, PageMoverFailure,
                         testing::Values(Failure{-ENOMEM, Counter::pgpromote_fail_nomem, PageOutcome::kNoMemory},
                                         Failure{-EACCES, Counter::pgpromote_fail_access, PageOutcome::kRefused},
                                         Failure{-EPERM, Counter::pgpromote_fail_access, PageOutcome::kRefused},
                                         Failure{-ENODEV, Counter::pgpromote_fail_other, PageOutcome::kRefused},
                                         Failure{-ENOSYS, Counter::pgpromote_fail_other, PageOutcome::kRefused}));

TEST_F(PageMoverTest, AFullNodeSendsPagesToTheNearestOtherDramNode) {
    pages_on(2, 0, 8);
    kernel.room[0] = 7 * kPageBytes;
    ASSERT_TRUE(add(plan(0, 8)));
    execute();
    EXPECT_EQ(kernel.node[page(0)], 1);
    EXPECT_EQ(counter(Counter::pgpromote_success), 8u);
}

TEST_F(PageMoverTest, NoRoomAnywhereIsNotTried) {
    pages_on(2, 0, 8);
    kernel.room[0] = kernel.room[1] = 0;
    ASSERT_TRUE(add(plan(0, 8)));
    execute();
    EXPECT_EQ(kernel.moves, 0u);
    EXPECT_EQ(pages_with(PageOutcome::kNoMemory), 8u);
}

TEST_F(PageMoverTest, MemoryThatTheProgramBoundStays) {
    pages_on(2, 0, 8);
    kernel.policy[page(0)] = 0;
    ASSERT_TRUE(add(plan(0, 8)));
    execute();
    EXPECT_EQ(kernel.moves, 0u);
    EXPECT_EQ(counter(Counter::pages_stale), 8u);
    EXPECT_EQ(pages_with(PageOutcome::kAbsent), 8u);
}

// A plan goes over several mappings. Their policies are asked for at every 16th page, and page by page where two of
// those differ: the borders are exact.
TEST_F(PageMoverTest, MappingsThatTheProgramBoundStay) {
    pages_on(2, 0, 512);
    for (unsigned i = 100; i < 150; ++i) kernel.policy[page(i)] = 0;
    for (unsigned i = 150; i < 300; ++i) kernel.policy[page(i)] = 0b010;
    for (unsigned i = 300; i < 307; ++i) kernel.policy[page(i)] = 0;
    ASSERT_TRUE(add(plan(0, 512)));
    EXPECT_EQ(mover->pages(), 512u - 207) << "the budget is asked for what will move";
    EXPECT_LT(kernel.policy_questions, 100u);
    execute();
    for (unsigned i = 0; i < 512; ++i) EXPECT_EQ(kernel.node[page(i)], i < 100 || i >= 307 ? 0 : 2) << i;
    EXPECT_EQ(counter(Counter::pgpromote_success), 512u - 207);
    EXPECT_EQ(counter(Counter::pages_stale), 207u);
    EXPECT_EQ(pages_with(PageOutcome::kAbsent), 207u);
}

// The least that is found for certain; the test of the boundary above it.
TEST_F(PageMoverTest, APieceAsLongAsTheStrideIsFoundWhereverItLies) {
    for (unsigned first = 1; first < 40; ++first) {
        pages_on(2, 0, 64);
        kernel.policy.clear();
        for (unsigned i = first; i < first + kPolicyStride; ++i) kernel.policy[page(i)] = 0;
        ASSERT_TRUE(add(plan(0, 64)));
        execute();
        for (unsigned i = 0; i < 64; ++i)
            EXPECT_EQ(kernel.node[page(i)], i < first || i >= first + kPolicyStride ? 0 : 2) << first << " " << i;
    }
}

// Asking is about a quarter of what the mover does, when it asks for every page.
TEST_F(PageMoverTest, AWholeChunkAsksForFewPoliciesAndOnceWhileTheAnswersAreFresh) {
    pages_on(2, 0, 512);
    ASSERT_TRUE(add(plan(0, 512)));
    const unsigned asked = kernel.policy_questions;
    EXPECT_LE(asked, 512 / kPolicyStride + 2);
    kernel.wait_ns(kChecksLastNs / 2);
    execute();
    EXPECT_EQ(kernel.policy_questions, asked);
    EXPECT_EQ(counter(Counter::pgpromote_success), 512u);
}

TEST_F(PageMoverTest, WhatWasBoundDuringALongWaitForTheBudgetStays) {
    pages_on(2, 0, 64);
    ASSERT_TRUE(add(plan(0, 64)));
    for (unsigned i = 20; i < 40; ++i) kernel.policy[page(i)] = 0b010;
    kernel.wait_ns(kChecksLastNs + 1);
    execute();
    EXPECT_EQ(kernel.node[page(19)], 0);
    for (unsigned i = 20; i < 40; ++i) EXPECT_EQ(kernel.node[page(i)], 2) << i;
    EXPECT_EQ(kernel.node[page(40)], 0);
    EXPECT_EQ(counter(Counter::pages_stale), 20u);
}

TEST_F(PageMoverTest, ABatchOfNothingMakesNoCall) {
    pages_on(2, 0, 40);
    for (unsigned i = 1; i < 40; ++i) kernel.policy[page(i)] = 0;
    kernel.node.erase(page(0));
    ASSERT_TRUE(add(plan(0, 40)));
    EXPECT_EQ(mover->bytes(), 0u);
    execute();
    EXPECT_EQ(kernel.moves, 0u);
    EXPECT_EQ(mover->last_call().pages, 0u);
}

TEST_F(PageMoverTest, TheFirstCallSaysHowLongItTook) {
    pages_on(2, 0, 512);
    kernel.pinned.insert(page(3));
    kernel.call_ns = 5000;
    ASSERT_TRUE(add(plan(0, 512)));
    execute();
    EXPECT_EQ(kernel.moves, 2u);
    EXPECT_EQ(mover->last_call().pages, 512u);
    EXPECT_GE(mover->last_call().ns, 5000u);
    EXPECT_LT(mover->last_call().ns, 5100u);
}

// A container's profile: the pages are there, and refused.
TEST_F(PageMoverTest, AQuestionThatIsRefusedIsARefusal) {
    pages_on(2, 0, 8);
    kernel.fail_queries_with = -EPERM;
    ASSERT_TRUE(add(plan(0, 8)));
    EXPECT_TRUE(mover->empty());
    EXPECT_EQ(counter(Counter::pgpromote_fail), 8u);
    EXPECT_EQ(counter(Counter::pgpromote_fail_access), 8u);
    EXPECT_EQ(pages_with(PageOutcome::kRefused), 8u);
}

TEST_F(PageMoverTest, APolicyOfOtherDramNodesIsKept) {
    pages_on(2, 0, 8);
    kernel.policy[page(0)] = 0b010;
    ASSERT_TRUE(add(plan(0, 8, 0)));
    execute();
    EXPECT_EQ(kernel.node[page(7)], 1);
}

TEST_F(PageMoverTest, ReusedMemoryIsNotMoved) {
    pages_on(2, 0, 16);
    kernel.generation = 1;
    ASSERT_TRUE(add(plan(0, 8)));
    EXPECT_TRUE(mover->empty());
    Move current = plan(8, 8);
    current.heap_generation = 1;
    ASSERT_TRUE(add(current));
    kernel.generation = 2;
    kernel.wait_ns(kChecksLastNs + 1);    // for the budget
    execute();
    EXPECT_EQ(kernel.moves, 0u);
    EXPECT_EQ(counter(Counter::pages_stale), 16u);
}

TEST_F(PageMoverTest, ABatchHasOneTargetAndABound) {
    pages_on(2, 0, 3000);
    ASSERT_TRUE(add(plan(0, 512, 0)));
    EXPECT_FALSE(mover->add(Move{page(512), 8, NodeId{1}, MoveRule::kPage, 0, {}}, on_outcome)) << "another target";
    for (unsigned i = 1; i < 4; ++i) ASSERT_TRUE(add(plan(i * 512, 512, 0)));
    EXPECT_FALSE(mover->add(Move{page(2048), 1, NodeId{0}, MoveRule::kPage, 0, {}}, on_outcome)) << "8 MiB";
    execute();
    EXPECT_EQ(counter(Counter::pgpromote_success), 2048u);
}

TEST_F(PageMoverTest, AHugePageIsOneAddress) {
    pages_on(2, 0, 512);
    for (unsigned i = 0; i < 512; ++i) kernel.folio[page(i)] = page(0);
    ASSERT_TRUE(add(plan(0, 512, 0, MoveRule::kHuge)));
    EXPECT_EQ(mover->bytes(), kChunkBytes);
    execute();
    EXPECT_EQ(kernel.call_sizes, std::vector<size_t>{1});
    EXPECT_EQ(counter(Counter::pgpromote_success), 512u);
}

// Purged and faulted in anew as base pages after it was sampled: the kernel moves one page.
TEST_F(PageMoverTest, AHugePageThatWasSplitCountsWhatMoved) {
    pages_on(2, 0, 512);
    ASSERT_TRUE(add(plan(0, 512, 0, MoveRule::kHuge)));
    execute();
    EXPECT_EQ(counter(Counter::pgpromote_success), 1u);
    EXPECT_EQ(counter(Counter::promoted_bytes), kPageBytes);
    EXPECT_EQ(counter(Counter::pages_stale), 511u);
    EXPECT_EQ(pages_with(PageOutcome::kPromoted), 1u);
    EXPECT_EQ(pages_with(PageOutcome::kAbsent), 511u) << "their heat was the huge page's";
}

// What the kernel does by itself where the target has no 2 MiB in one piece; the last pages found no room.
TEST_F(PageMoverTest, OfAHugePageThatWentInPiecesEveryPieceIsAccountedFor) {
    pages_on(2, 0, 512);
    kernel.split_until[page(0)] = 300;
    ASSERT_TRUE(add(plan(0, 512, 0, MoveRule::kHuge)));
    execute();
    EXPECT_EQ(kernel.moves, 1u);
    EXPECT_EQ(counter(Counter::pgpromote_success), 300u);
    EXPECT_EQ(counter(Counter::pgpromote_fail_nomem), 212u);
    EXPECT_EQ(counter(Counter::huge_pages_split), 1u);
    EXPECT_EQ(pages_with(PageOutcome::kPromoted), 300u);
    EXPECT_EQ(pages_with(PageOutcome::kNoMemory), 212u);
    EXPECT_EQ((kernel.went[{2, 0}]), 300 * kPageBytes);
}

TEST_F(PageMoverTest, AHugePageForWhichThereIsNoRoomAtAllStaysWhole) {
    pages_on(2, 0, 512);
    kernel.fail_moves_with = -ENOMEM;
    ASSERT_TRUE(add(plan(0, 512, 0, MoveRule::kHuge)));
    execute();
    EXPECT_EQ(pages_with(PageOutcome::kNoMemory), 512u);
    EXPECT_EQ(counter(Counter::huge_pages_split), 0u);
}

TEST_F(PageMoverTest, AHugePageWhoseEndsAreApartIsNone) {
    pages_on(2, 0, 1);
    pages_on(0, 511, 1);
    ASSERT_TRUE(add(plan(0, 512, 0, MoveRule::kHuge)));
    EXPECT_TRUE(mover->empty());
    execute();
    EXPECT_EQ(kernel.moves, 0u);
    EXPECT_EQ(counter(Counter::pages_stale), 512u);
}

// Base pages of a multi-size huge page: the first takes the others along, and the kernel calls one of them busy.
TEST_F(PageMoverTest, APageThatWentAlongWithItsFolioIsPromoted) {
    pages_on(2, 0, 16);
    for (unsigned i = 0; i < 16; ++i) kernel.folio[page(i)] = page(0);
    kernel.refuses = {{page(1), -EBUSY}};
    ASSERT_TRUE(add(plan(0, 16)));
    execute();
    EXPECT_EQ(counter(Counter::pgpromote_success), 16u);
    EXPECT_EQ(kernel.moves, 1u);
}

TEST_F(PageMoverTest, ADroppedBatchIsExpired) {
    pages_on(2, 0, 8);
    ASSERT_TRUE(add(plan(0, 8)));
    mover->drop(on_outcome);
    EXPECT_EQ(counter(Counter::pages_expired), 8u);
    EXPECT_EQ(pages_with(PageOutcome::kNotTried), 8u);
}

TEST_F(PageMoverTest, ATargetThatDoesNotExistIsStale) {
    pages_on(2, 0, 1);
    ASSERT_TRUE(add(plan(0, 1, -1)));
    ASSERT_TRUE(add(plan(0, 1, 9)));
    EXPECT_EQ(counter(Counter::pages_stale), 2u);
}

// ---- the other ways

// The machine with a second expander, node 3, farther from node 0 and nearer to node 1.
class TwoExpanders : public PageMoverTest {
protected:
    TwoExpanders() {
        topology.node_count = 4;
        topology.nodes[3] = {.online_memory = true, .allowed = true, .lower_tier = true};
        topology.distance[0][3] = 60;
        topology.distance[1][3] = 40;
    }
};

TEST_F(TwoExpanders, DemotionGoesToTheNearestLowerNode) {
    pages_on(0, 0, 8);
    pages_on(1, 8, 8);
    ASSERT_TRUE(add(demotion(0, 8, 0)));
    ASSERT_FALSE(
        mover->add(Move{.address = page(8), .pages = 8, .kind = MoveKind::kDemote, .from = NodeId{1}}, on_outcome))
        << "another target";
    execute();
    ASSERT_TRUE(add(demotion(8, 8, 1)));
    execute();
    EXPECT_EQ(kernel.node[page(0)], 2);
    EXPECT_EQ(kernel.node[page(8)], 3);
    EXPECT_EQ(counter(Counter::pgdemote_success), 16u);
    EXPECT_EQ(counter(Counter::demoted_bytes), 16 * kPageBytes);
    EXPECT_EQ(counter(Counter::pgpromote_success), 0u);
    ASSERT_EQ(outcomes.size(), 2u);
    EXPECT_EQ(outcomes[0].outcome, PageOutcome::kDemoted);
    EXPECT_EQ(outcomes[0].kind, MoveKind::kDemote);
    EXPECT_EQ(outcomes[0].node, NodeId{2});
    EXPECT_FALSE(outcomes[0].in_top_tier());
    EXPECT_EQ((kernel.went[{0, 2}]), 8 * kPageBytes) << "room on one node, less on the other";
    EXPECT_EQ((kernel.went[{1, 3}]), 8 * kPageBytes);
}

TEST_F(TwoExpanders, AFullLowerNodeIsReplacedByTheOther) {
    pages_on(0, 0, 16);
    kernel.room[2] = 7 * kPageBytes;
    ASSERT_TRUE(add(demotion(0, 8, 0)));
    execute();
    EXPECT_EQ(kernel.node[page(0)], 3);
    kernel.room[3] = 0;
    ASSERT_TRUE(add(demotion(8, 8, 0)));
    EXPECT_EQ(pages_with(PageOutcome::kNoMemory), 8u);
    EXPECT_EQ(counter(Counter::pgdemote_fail), 8u);
    EXPECT_EQ(counter(Counter::pgpromote_fail), 0u);
    EXPECT_EQ(counter(Counter::pgpromote_fail_nomem), 0u) << "errors are told apart for promotions";
}

TEST_F(PageMoverTest, OnlyPagesOfTheNodeToBeRelievedAreDemoted) {
    pages_on(0, 0, 4);
    pages_on(1, 4, 4);
    pages_on(2, 8, 4);
    ASSERT_TRUE(add(demotion(0, 16, 0)));
    EXPECT_EQ(mover->pages(), 4u);
    execute();
    EXPECT_EQ(pages_with(PageOutcome::kDemoted), 4u);
    EXPECT_EQ(pages_with(PageOutcome::kElsewhere), 4u);
    EXPECT_EQ(pages_with(PageOutcome::kAtTarget), 4u);
    EXPECT_EQ(pages_with(PageOutcome::kAbsent), 4u);
    EXPECT_EQ(kernel.node[page(4)], 1);
    for (const MoveOutcome& each : outcomes)
        if (each.outcome == PageOutcome::kElsewhere) {
            EXPECT_EQ(each.node, NodeId{1});
            EXPECT_TRUE(each.in_top_tier());
        }
    ASSERT_TRUE(add(demotion(4, 4)));
    execute();
    EXPECT_EQ(kernel.node[page(4)], 2) << "any top-tier node, where none is named";
}

TEST_F(PageMoverTest, WhatTheProgramPutIntoDramIsNotDemoted) {
    pages_on(0, 0, 8);
    kernel.policy[page(0)] = 0;
    ASSERT_TRUE(add(demotion(0, 8, 0)));
    EXPECT_TRUE(mover->empty());
    EXPECT_EQ(pages_with(PageOutcome::kRefused), 8u) << "not to be planned again, and its heat stays";
    EXPECT_EQ(counter(Counter::pages_stale), 8u);
}

TEST_F(PageMoverTest, RehomingGoesToTheNodeThatWasAskedForOrNowhere) {
    pages_on(0, 0, 8);
    pages_on(1, 8, 4);
    pages_on(2, 12, 4);
    ASSERT_TRUE(add(rehoming(0, 16, 1)));
    execute();
    EXPECT_EQ(counter(Counter::numa_pages_migrated), 8u);
    EXPECT_EQ(counter(Counter::rehomed_bytes), 8 * kPageBytes);
    EXPECT_EQ(pages_with(PageOutcome::kRehomed), 8u);
    EXPECT_EQ(pages_with(PageOutcome::kAtTarget), 4u);
    EXPECT_EQ(pages_with(PageOutcome::kElsewhere), 4u) << "that is a promotion's work";
    EXPECT_EQ(kernel.node[page(12)], 2);
    kernel.room[0] = 0;
    ASSERT_TRUE(add(rehoming(0, 8, 0)));
    EXPECT_EQ(pages_with(PageOutcome::kNoMemory), 8u);
    EXPECT_EQ(counter(Counter::numa_pages_fail), 8u);
}

TEST_F(PageMoverTest, ABatchHoldsOneKind) {
    pages_on(2, 0, 8);
    pages_on(0, 8, 8);
    ASSERT_TRUE(add(plan(0, 8, 1)));
    const Move other = rehoming(8, 8, 1);
    EXPECT_FALSE(add(other)) << "same target";
    execute();
    EXPECT_TRUE(add(other));
    execute();
    EXPECT_EQ(counter(Counter::pgpromote_success), 8u);
    EXPECT_EQ(counter(Counter::numa_pages_migrated), 8u);
}

// Three moves of 8 pages and room for 20 pages.
TEST_F(PageMoverTest, WhatWaitsInTheBatchTakesRoomToo) {
    pages_on(2, 0, 24);
    kernel.room[0] = 20 * kPageBytes;
    ASSERT_TRUE(add(plan(0, 8)));
    ASSERT_TRUE(add(plan(8, 8)));
    const Move third = plan(16, 8);
    EXPECT_FALSE(add(third)) << "to node 1, and in another batch";
    execute();
    kernel.room[0] -= 16 * kPageBytes;
    ASSERT_TRUE(add(third));
    execute();
    EXPECT_EQ(kernel.node[page(8)], 0);
    EXPECT_EQ(kernel.node[page(16)], 1);
}

}    // namespace
}    // namespace pghot
