// SPDX-License-Identifier: Apache-2.0
// The allocator linked into the test itself (not preloaded), to see what it tells the runtime: registry, generations,
// mapped bytes, the start signal.

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "allocator/jemalloc_api.h"
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

HeapObject object_of(const void* address) { return heap_object_lookup(reinterpret_cast<uintptr_t>(address)); }

void expect_object(const char* block, size_t bytes) {
    const HeapObject object = object_of(block + bytes / 2);
    const auto begin = reinterpret_cast<uintptr_t>(block);
    EXPECT_GE(object.begin, begin) << bytes;
    EXPECT_LT(object.begin, begin + kChunkBytes) << bytes;
    EXPECT_LE(object.end, begin + bytes + kPageBytes) << bytes;
    EXPECT_GT(object.end + kChunkBytes, begin + bytes) << bytes;
}

TEST(HeapObjects, ALargeBlockIsOneWhereverItCameFromUntilItIsFreed) {
    auto* block = static_cast<char*>(malloc(40 * kMib));
    expect_object(block, 40 * kMib);
    free(block);
    EXPECT_EQ(object_of(block + 20 * kMib).end, 0u);
    block = static_cast<char*>(calloc(1, 40 * kMib));
    expect_object(block, 40 * kMib);
    free(block);
    block = static_cast<char*>(aligned_alloc(4 * kMib, 40 * kMib));
    expect_object(block, 40 * kMib);
    free(block);
    block = static_cast<char*>(malloc(2 * kMib));
    EXPECT_EQ(object_of(block + kMib).end, 0u) << "too small to be looked at as a whole";
    free(block);
}

TEST(HeapObjects, AResizedBlockIsKnownByItsNewSize) {
    auto* block = static_cast<char*>(malloc(20 * kMib));
    for (size_t size : {24 * kMib, 200 * kMib, 1000 * kMib, 600 * kMib, 300 * kMib, 40 * kMib, 18 * kMib}) {
        block = static_cast<char*>(realloc(block, size));
        ASSERT_NE(block, nullptr);
        expect_object(block, malloc_usable_size(block));
    }
    block = static_cast<char*>(realloc(block, kMib));
    EXPECT_EQ(object_of(block + kMib / 2).end, 0u);
    free(block);
}

// A machine of many processors has many arenas; a failure looks through all of them, on whatever stack the program is.
ucontext_t out_of_coroutine;
bool failed_as_it_should = false;

void fail_to_allocate() {
    volatile size_t too_much = size_t{1} << 50;    // as large as a size may be, and more than there are addresses
    failed_as_it_should = malloc(too_much) == nullptr;
}

TEST(FreedMemory, FailingNeedsLittleStackHoweverManyArenasThereAre) {
    for (int i = 0; i < 2500; ++i) {
        unsigned arena = 0;
        size_t bytes = sizeof arena;
        ASSERT_EQ(jemalloc::mallctl("arenas.create", &arena, &bytes, nullptr, 0), 0);
    }
    constexpr size_t kStackBytes = 16384;
    auto* guarded = static_cast<char*>(
        mmap(nullptr, kPageBytes + kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(guarded, MAP_FAILED);
    ASSERT_EQ(mprotect(guarded, kPageBytes, PROT_NONE), 0);
    ucontext_t coroutine;
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = guarded + kPageBytes;
    coroutine.uc_stack.ss_size = kStackBytes;
    coroutine.uc_link = &out_of_coroutine;
    makecontext(&coroutine, fail_to_allocate, 0);
    swapcontext(&out_of_coroutine, &coroutine);
    EXPECT_TRUE(failed_as_it_should);
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

// In fresh memory, ours does what jemalloc's does.
TEST(ExtentSets, OfTheLibraryAreThoseOfJemalloc) {
    constexpr uint32_t kStateOfRetainedExtents = 3;
    std::array<char, jemalloc::kExtentSetBytes + 64> ours{}, real{};
    jemalloc::je_eset_init(reinterpret_cast<jemalloc::ExtentSet*>(ours.data()), kStateOfRetainedExtents);
    jemalloc::__real_je_eset_init(reinterpret_cast<jemalloc::ExtentSet*>(real.data()), kStateOfRetainedExtents);
    EXPECT_EQ(ours, real);
    EXPECT_NE(ours, decltype(ours){});

    real.fill('x');    // it writes everything up to the end that we know, and nothing behind it
    jemalloc::__real_je_eset_init(reinterpret_cast<jemalloc::ExtentSet*>(real.data()), kStateOfRetainedExtents);
    EXPECT_NE(real[jemalloc::kExtentSetStateAt], 'x');
    EXPECT_EQ(real[jemalloc::kExtentSetBytes], 'x');
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
