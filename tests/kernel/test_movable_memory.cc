// SPDX-License-Identifier: Apache-2.0
// What of this very process may move, asked of the kernel and of an invented allocator.
#include <gtest/gtest.h>
#include <numaif.h>
#include <sys/mman.h>

#include <memory>
#include <vector>

#include "runtime/base/heap.h"
#include "runtime/engine/movable_memory.h"

namespace pghot {
namespace {

HeapExtent heap_answer;
uintptr_t heap_begin = 0, heap_end = 0;

HeapExtent look_up(uintptr_t address) {
    return address >= heap_begin && address < heap_end ? heap_answer : HeapExtent{};
}

class MovableMemoryTest : public testing::Test {
protected:
    void SetUp() override {
        sys::MemoryPolicy policy;
        if (sys::policy_of_thread(policy) != 0) GTEST_SKIP() << "get_mempolicy is blocked here";
        topology.node_count = 1;
        topology.nodes[0] = {.online_memory = true, .has_cpus = true, .allowed = true};
        memory = static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        heap_lookup = look_up;
        heap_answer = {};
        heap_begin = heap_end = 0;
    }
    void TearDown() override {
        heap_lookup = nullptr;
        if (memory != nullptr) munmap(memory, kBytes);
    }
    MovableMemory& made(Scope scope) {
        movable = std::make_unique<MovableMemory>(files, topology, scope, thread_policy, storage);
        movable->refresh(TimeNs{1});
        return *movable;
    }
    uintptr_t at(size_t page) const { return reinterpret_cast<uintptr_t>(memory) + page * kPageBytes; }
    void heap_is(size_t first, size_t pages, HeapExtent answer) {
        heap_begin = at(first);
        heap_end = at(first + pages);
        heap_answer = answer;
    }

    static constexpr size_t kBytes = 1 << 20;
    KernelFiles files;
    Topology topology;
    sys::MemoryPolicy thread_policy;
    std::vector<AddressRange> storage = std::vector<AddressRange>(65536);
    std::unique_ptr<MovableMemory> movable;
    char* memory = nullptr;
};

TEST_F(MovableMemoryTest, ScopeHeapIsTheHeapAlone) {
    heap_is(0, 16, {.ours = true});
    EXPECT_TRUE(made(Scope::kProcess).may_move(at(100)));
    EXPECT_FALSE(made(Scope::kHeap).may_move(at(100)));
    EXPECT_TRUE(made(Scope::kHeap).may_move(at(3)));
}

TEST_F(MovableMemoryTest, APinnedPlacementStays) {
    heap_is(0, 16, {.ours = true, .movable = false});
    EXPECT_FALSE(made(Scope::kProcess).may_move(at(3)));
    EXPECT_EQ(targets_at(at(3), MoveKind::kPromote, Scope::kProcess, thread_policy, topology), 0u);
}

// The other way too.
TEST_F(MovableMemoryTest, WhatTheProgramBoundIsNotDemoted) {
    topology.node_count = 2;
    topology.nodes[1] = {.online_memory = true, .allowed = true, .lower_tier = true};
    const auto may_be_demoted_to = [&] {
        return targets_at(at(3), MoveKind::kDemote, Scope::kProcess, thread_policy, topology);
    };
    EXPECT_EQ(may_be_demoted_to(), 0b10u);
    const unsigned long node0 = 1;
    ASSERT_EQ(mbind(memory, kBytes, MPOL_PREFERRED, &node0, 64, 0), 0);
    EXPECT_EQ(may_be_demoted_to(), 0u);
    heap_is(0, 256, {.ours = true, .bound = true});
    EXPECT_EQ(may_be_demoted_to(), 0b10u) << "a placement of ours";
    heap_is(0, 256, {.ours = true, .movable = false, .bound = true});
    EXPECT_EQ(may_be_demoted_to(), 0u) << "pinned";
}

// Our own "born here" is not the program's "stay here".
TEST_F(MovableMemoryTest, APolicyOfOursDoesNotHoldPages) {
    const unsigned long node0 = 1;
    ASSERT_EQ(mbind(memory, kBytes, MPOL_PREFERRED, &node0, 64, 0), 0);
    topology.nodes[0].lower_tier = true;
    topology.node_count = 2;
    topology.nodes[1] = {.online_memory = true, .has_cpus = true, .allowed = true};
    EXPECT_EQ(targets_at(at(3), MoveKind::kPromote, Scope::kProcess, thread_policy, topology), 0u)
        << "the program's wish";
    heap_is(0, 256, {.ours = true, .bound = true});
    EXPECT_EQ(targets_at(at(3), MoveKind::kPromote, Scope::kProcess, thread_policy, topology), 0b10u);
    EXPECT_EQ(targets_at(at(3), MoveKind::kDemote, Scope::kProcess, thread_policy, topology), 0b01u);
    ASSERT_EQ(mbind(memory, kBytes, MPOL_BIND, &node0, 64, 0), 0);
    EXPECT_EQ(targets_at(at(3), MoveKind::kPromote, Scope::kProcess, thread_policy, topology), 0u)
        << "bound in our heap by the program";
}

TEST_F(MovableMemoryTest, APlanIsCutToWhatIsMapped) {
    munmap(memory + 10 * kPageBytes, 5 * kPageBytes);
    uint32_t kept = 0, dropped = 0;
    made(Scope::kProcess)
        .clip(
            Move{at(8), 20, NodeId{0}, MoveRule::kChunk, 0, {}},
            [&](const Move& part) {
                EXPECT_TRUE(part.address == at(8) || part.address == at(15));
                kept += part.pages;
            },
            [&](const MoveOutcome& outcome) {
                EXPECT_EQ(outcome.outcome, PageOutcome::kAbsent);
                dropped += outcome.pages;
            });
    EXPECT_EQ(kept, 15u);
    EXPECT_EQ(dropped, 5u);
}

TEST_F(MovableMemoryTest, ANewMappingIsKnownAfterTheNextRefreshAndNotBefore) {
    MovableMemory& known = made(Scope::kProcess);
    void* later = mmap(nullptr, kChunkBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const auto address = reinterpret_cast<uintptr_t>(later);
    const bool merged = known.may_move(address);    // it may lie beside a mapping that is known
    if (!merged) {
        EXPECT_FALSE(known.refresh(TimeNs{2})) << "not more often than its cost allows";
        EXPECT_TRUE(known.refresh(TimeNs{2 * kNsPerSecond}));
        EXPECT_TRUE(known.may_move(address));
    }
    munmap(later, kChunkBytes);
}

TEST_F(MovableMemoryTest, ReuseIsToldOnce) {
    heap_is(0, 256, {.ours = true, .generation = 5});
    MovableMemory& known = made(Scope::kProcess);
    EXPECT_FALSE(known.was_reused(at(3))) << "first sight";
    EXPECT_FALSE(known.was_reused(at(3)));
    heap_answer.generation = 6;
    EXPECT_TRUE(known.was_reused(at(3)));
    EXPECT_FALSE(known.was_reused(at(3)));
}

}    // namespace
}    // namespace pghot
