// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "allocator/extent_registry.h"

namespace pghot {
namespace {

constexpr uintptr_t kBase = 0x7f0000000000;
constexpr uintptr_t kLeafSpan = uintptr_t{16} << 30;    // addresses of one leaf

class Registry : public ::testing::Test {
protected:
    bool ours(uintptr_t address) const { return registry_->find(address).ours; }
    uint32_t generation(uintptr_t address) const { return registry_->find(address).generation; }

    std::vector<std::pair<uintptr_t, size_t>> runs(uint8_t placement) const {
        std::vector<std::pair<uintptr_t, size_t>> all;
        registry_->for_each_run(placement, [&](uintptr_t begin, size_t bytes) { all.emplace_back(begin, bytes); });
        return all;
    }

    std::unique_ptr<ExtentRegistry> registry_ = std::make_unique<ExtentRegistry>();
};

TEST_F(Registry, EmptyKnowsNothing) {
    for (uintptr_t address : {uintptr_t{0}, kBase, (uintptr_t{1} << 47) - 1, uintptr_t{1} << 47, UINTPTR_MAX})
        EXPECT_FALSE(ours(address)) << address;
}

TEST_F(Registry, KnowsAMappingToThePage) {
    registry_->add(kBase + 3 * kPageBytes, 2 * kPageBytes, 0, false);
    EXPECT_FALSE(ours(kBase + 3 * kPageBytes - 1));
    EXPECT_TRUE(ours(kBase + 3 * kPageBytes));
    EXPECT_TRUE(ours(kBase + 5 * kPageBytes - 1));
    EXPECT_FALSE(ours(kBase + 5 * kPageBytes));
}

TEST_F(Registry, KnowsAMappingOverManyChunksAndLeaves) {
    const uintptr_t begin = kBase + kLeafSpan - 5 * kChunkBytes - kPageBytes;
    const size_t bytes = 10 * kChunkBytes + 2 * kPageBytes;
    registry_->add(begin, bytes, 3, true);
    for (uintptr_t address = begin; address < begin + bytes; address += kChunkBytes / 2) EXPECT_TRUE(ours(address));
    EXPECT_FALSE(ours(begin - 1));
    EXPECT_FALSE(ours(begin + bytes));
    const HeapExtent extent = registry_->find(begin + bytes / 2);
    EXPECT_EQ(extent.placement, 3);
    EXPECT_FALSE(extent.movable);
}

TEST_F(Registry, NeighboursInOneChunkAreBothKnown) {
    registry_->add(kBase + 100 * kPageBytes, 10 * kPageBytes, 0, false);
    registry_->add(kBase + 90 * kPageBytes, 10 * kPageBytes, 0, false);
    EXPECT_TRUE(ours(kBase + 90 * kPageBytes));
    EXPECT_TRUE(ours(kBase + 109 * kPageBytes));
    EXPECT_FALSE(ours(kBase + 110 * kPageBytes));
}

TEST_F(Registry, RemovingTheEndsTrimsAndRemovingAllForgets) {
    registry_->add(kBase, kChunkBytes, 0, false);
    registry_->remove(kBase, 4 * kPageBytes);
    registry_->remove(kBase + kChunkBytes - 4 * kPageBytes, 4 * kPageBytes);
    EXPECT_FALSE(ours(kBase + 4 * kPageBytes - 1));
    EXPECT_TRUE(ours(kBase + 4 * kPageBytes));
    EXPECT_TRUE(ours(kBase + kChunkBytes - 4 * kPageBytes - 1));
    EXPECT_FALSE(ours(kBase + kChunkBytes - 4 * kPageBytes));
    registry_->remove(kBase + 4 * kPageBytes, kChunkBytes - 8 * kPageBytes);
    EXPECT_FALSE(ours(kBase + kChunkBytes / 2));
}

TEST_F(Registry, MappingAgainAfterUnmappingHasAnotherGeneration) {
    registry_->add(kBase, kChunkBytes, 0, false);
    const uint32_t before = generation(kBase);
    registry_->remove(kBase, kChunkBytes);
    registry_->add(kBase, kChunkBytes, 1, false);
    EXPECT_NE(generation(kBase), before);
    EXPECT_EQ(registry_->find(kBase).placement, 1);
}

TEST_F(Registry, PurgeOfAQuarterChunkMovesItsGenerationAndLessDoesNot) {
    registry_->add(kBase, 4 * kChunkBytes, 0, false);
    registry_->forget_contents(kBase, kChunkBytes / 4 - kPageBytes);
    EXPECT_EQ(generation(kBase), 0U);
    registry_->forget_contents(kBase, kChunkBytes / 4);
    EXPECT_EQ(generation(kBase), 1U);
    EXPECT_EQ(generation(kBase + kChunkBytes), 0U);
}

TEST_F(Registry, PurgeOverSeveralChunksSparesTheBarelyTouchedOnes) {
    registry_->add(kBase, 4 * kChunkBytes, 0, false);
    registry_->forget_contents(kBase + kChunkBytes - kPageBytes, kChunkBytes + 2 * kPageBytes);
    EXPECT_EQ(generation(kBase), 0U);
    EXPECT_EQ(generation(kBase + kChunkBytes), 1U);
    EXPECT_EQ(generation(kBase + 2 * kChunkBytes), 0U);
}

TEST_F(Registry, PurgingWhatIsUnknownIsHarmless) {
    registry_->forget_contents(kBase, 10 * kChunkBytes);
    registry_->remove(kBase, 10 * kChunkBytes);
    EXPECT_FALSE(ours(kBase));
}

TEST_F(Registry, GenerationWrapsWithoutTouchingTheRest) {
    registry_->add(kBase, kChunkBytes, 5, true);
    for (int i = 0; i < 1000; ++i) registry_->forget_contents(kBase, kChunkBytes);
    EXPECT_EQ(generation(kBase), 1000U);
    EXPECT_EQ(registry_->find(kBase).placement, 5);
    EXPECT_FALSE(registry_->find(kBase).movable);
}

TEST_F(Registry, RunsAreJoinedOverChunksAndSplitAtGaps) {
    registry_->add(kBase + kPageBytes, 3 * kChunkBytes, 0, false);
    registry_->add(kBase + 8 * kChunkBytes, kChunkBytes, 0, false);
    registry_->add(kBase + 9 * kChunkBytes, kChunkBytes, 1, false);
    const std::vector<std::pair<uintptr_t, size_t>> expected{{kBase + kPageBytes, 3 * kChunkBytes},
                                                             {kBase + 8 * kChunkBytes, kChunkBytes}};
    EXPECT_EQ(runs(0), expected);
    EXPECT_EQ(runs(1).size(), 1U);
    EXPECT_TRUE(runs(2).empty());
}

TEST_F(Registry, AddressesAboveTheUserHalfStayUnknown) {
    registry_->add(uintptr_t{1} << 50, kChunkBytes, 0, false);
    EXPECT_FALSE(ours(uintptr_t{1} << 50));
}

TEST_F(Registry, AnObjectIsTheWholeChunksOfABlock) {
    const size_t bytes = 20 * kChunkBytes;
    const uintptr_t begin = kBase + kLeafSpan - 5 * kChunkBytes + kPageBytes;    // over the border of two leaves
    registry_->add(begin, bytes, 0, false);
    EXPECT_EQ(registry_->find_object(begin + bytes / 2).end, 0u);
    registry_->add_object(begin, bytes);
    const uintptr_t first = begin - kPageBytes + kChunkBytes;
    for (uintptr_t address = first; address < first + 19 * kChunkBytes; address += kChunkBytes / 2) {
        EXPECT_EQ(registry_->find_object(address).begin, first);
        EXPECT_EQ(registry_->find_object(address).end, first + 19 * kChunkBytes);
    }
    EXPECT_EQ(registry_->find_object(begin).end, 0u) << "the first chunk is shared with others";
    EXPECT_EQ(registry_->find_object(first + 19 * kChunkBytes).end, 0u);
    registry_->remove_object(begin, bytes);
    for (uintptr_t address = begin; address < begin + bytes; address += kChunkBytes)
        EXPECT_EQ(registry_->find_object(address).end, 0u);
}

TEST_F(Registry, SmallBlocksAndUnknownMemoryAreNoObjects) {
    registry_->add(kBase, 64 * kChunkBytes, 0, false);
    registry_->add_object(kBase, 8 * kChunkBytes - 1);
    EXPECT_EQ(registry_->find_object(kBase).end, 0u);
    registry_->add_object(kBase + 2 * kLeafSpan, 16 * kChunkBytes);    // no leaf there
    EXPECT_EQ(registry_->find_object(kBase + 2 * kLeafSpan).end, 0u);
    EXPECT_EQ(registry_->find_object(uintptr_t{1} << 50).end, 0u);
}

// Threads share chunks and make leaves at the same time; each must find its own pages all along.
TEST_F(Registry, ThreadsDoNotLoseEachOthersPages) {
    constexpr unsigned kThreads = 4;
    std::vector<std::thread> threads;
    std::atomic<int> lost{0};
    for (unsigned id = 0; id < kThreads; ++id)
        threads.emplace_back([&, id] {
            for (uintptr_t leaf = 0; leaf < 20; ++leaf) {
                const uintptr_t own = kBase + leaf * kLeafSpan + id * kPageBytes;
                registry_->add(own, kPageBytes, 0, false);
                registry_->forget_contents(own, kPageBytes);
                if (!ours(own)) ++lost;
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(lost.load(), 0);
}

}    // namespace
}    // namespace pghot
