// SPDX-License-Identifier: Apache-2.0
// The allocator linked into the test itself (not preloaded), to see what it tells the runtime: registry, generations,
// mapped bytes, the start signal.

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "allocator/start_trigger.h"
#include "runtime/base/heap.h"
#include "runtime/base/units.h"

namespace pghot {
namespace {

constexpr size_t kMib = 1 << 20;
// What runs until jemalloc's event must come: it is due once per 64 KiB.
constexpr size_t kEnoughForAnEvent = 4 * kMib;

HeapExtent extent_of(const void* address) { return heap_lookup(reinterpret_cast<uintptr_t>(address)); }

char* touched_block(size_t bytes) {
    auto* block = static_cast<char*>(malloc(bytes));
    if (block != nullptr) memset(block, 1, bytes);
    return block;
}

void allocate_enough_for_an_event() {
    for (size_t done = 0; done < kEnoughForAnEvent; done += 1024) free(touched_block(1024));
}

TEST(HeapLookup, KnowsBlocksOfEverySizeToTheLastByte) {
    for (size_t bytes : {size_t{1}, size_t{100}, size_t{14000}, size_t{30000}, kMib, 16 * kMib, 1024 * kMib}) {
        auto* block = static_cast<char*>(malloc(bytes));
        ASSERT_NE(block, nullptr);
        for (const char* address : {block, block + bytes / 2, block + bytes - 1}) {
            const HeapExtent extent = extent_of(address);
            EXPECT_TRUE(extent.ours) << bytes;
            EXPECT_TRUE(extent.movable) << bytes;
            EXPECT_EQ(extent.placement, 0) << bytes;
        }
        free(block);
    }
}

TEST(HeapLookup, FreeingALargeBlockMovesTheGenerationOn) {
    char* block = touched_block(16 * kMib);
    const char* middle = block + 8 * kMib;
    const uint32_t before = extent_of(middle).generation;
    free(block);
    EXPECT_NE(extent_of(middle).generation, before);
}

TEST(HeapLookup, FreeingASmallBlockKeepsTheGeneration) {
    char* block = touched_block(1000);
    const uint32_t before = extent_of(block).generation;
    free(block);
    EXPECT_EQ(extent_of(block).generation, before);
}

TEST(HeapLookup, PurgingMovesTheGenerationOn) {
    char* block = touched_block(16 * kMib);
    const char* middle = block + 8 * kMib;
    free(block);
    const uint32_t freed = extent_of(middle).generation;
    malloc_trim(0);
    EXPECT_NE(extent_of(middle).generation, freed);
}

TEST(StartSignal, CountsTheBytesThatTheHeapMaps) {
    // Untouched, and more than other tests may have left behind for reuse.
    constexpr size_t kBytes = 4096 * kMib;
    const uint64_t before = start_signal.mapped_bytes.load();
    void* block = malloc(kBytes);
    ASSERT_NE(block, nullptr);
    EXPECT_GE(start_signal.mapped_bytes.load(), before + kBytes);
    free(block);
}

std::atomic<int> polls{0};

class Armed : public ::testing::Test {
protected:
    void SetUp() override {
        polls = 0;
        note_own_process();    // by whoever arms, as in startup.cc; again in a forked child
        start_signal.poll = [] { ++polls; };
        start_signal.armed = true;
    }
    void TearDown() override {
        start_signal.armed = false;
        start_signal.poll = nullptr;
    }
};

TEST_F(Armed, IsPolledByAThreadThatAllocates) {
    allocate_enough_for_an_event();
    EXPECT_GT(polls.load(), 0);
}

TEST_F(Armed, IsNotPolledOnceDisarmed) {
    start_signal.armed = false;
    allocate_enough_for_an_event();
    EXPECT_EQ(polls.load(), 0);
}

TEST_F(Armed, PollMayAllocateAndIsNotEnteredAgainByThat) {
    static std::atomic<int> depth, deepest;
    start_signal.poll = [] {
        if (++depth > deepest) deepest = depth.load();
        if (++polls < 10) allocate_enough_for_an_event();
        free(touched_block(20 * kMib));
        --depth;
    };
    allocate_enough_for_an_event();
    EXPECT_GT(polls.load(), 0);
    EXPECT_EQ(deepest.load(), 1);
}

TEST_F(Armed, PollMayStartAThread) {
    start_signal.poll = [] {
        start_signal.armed = false;
        std::thread([] { ++polls; }).join();
    };
    allocate_enough_for_an_event();
    EXPECT_EQ(polls.load(), 1);
}

TEST_F(Armed, PollKeepsErrnoOfTheProgram) {
    start_signal.poll = [] {
        ++polls;
        errno = ENOENT;
    };
    errno = 77;
    allocate_enough_for_an_event();
    EXPECT_EQ(errno, 77);
    EXPECT_GT(polls.load(), 0);
}

// The child runs on our memory: what it polled would show here.
TEST_F(Armed, IsNeverPolledInAVforkChild) {
    polls = 0;
    const pid_t child = vfork();
    if (child == 0) {
        for (size_t done = 0; done < kEnoughForAnEvent; done += 1024) free(malloc(1024));
        _exit(0);
    }
    const int during_the_child = polls.load();
    ASSERT_GT(child, 0);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(during_the_child, 0);
    allocate_enough_for_an_event();
    EXPECT_GT(polls.load(), 0);
}

TEST_F(Armed, IsPolledInAForkedChild) {
    const pid_t child = fork();
    if (child == 0) {
        polls = 0;
        note_own_process();
        allocate_enough_for_an_event();
        _exit(polls.load() > 0 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

}    // namespace
}    // namespace pghot
