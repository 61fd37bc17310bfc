// SPDX-License-Identifier: Apache-2.0
// What the entry points answer, beyond the plain cases: odd arguments, failures, errno, one function's block in
// another.

#include <malloc.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/preload/language/ways_to_allocate.h"
#include "tests/preload/loaded.h"

extern "C" {
[[gnu::weak]] void free_sized(void*, size_t);
[[gnu::weak]] void free_aligned_sized(void*, size_t, size_t);
}

namespace {

class MallocFamily : public Preloaded {};

TEST_F(MallocFamily, ReallocToZeroFreesAndKeepsErrno) {
    void* block = malloc(100);
    errno = 77;
    EXPECT_EQ(realloc(block, opaque(0)), nullptr);
    EXPECT_EQ(errno, 77);
}

TEST_F(MallocFamily, FailingReallocSaysSoAndKeepsTheBlock) {
    auto* block = static_cast<char*>(malloc(100));
    strcpy(block, "kept");
    errno = 0;
    EXPECT_EQ(realloc(block, opaque(SIZE_MAX / 2 + 1)), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_STREQ(block, "kept");
    free(block);
}

TEST_F(MallocFamily, MemalignRoundsAnOddAlignmentUp) {
    void* block = memalign(opaque(48), 100);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0U);
    free(block);
}

TEST_F(MallocFamily, MemalignWithoutAlignmentIsMalloc) {
    void* block = memalign(opaque(0), 100);
    EXPECT_NE(block, nullptr);
    free(block);
}

TEST_F(MallocFamily, AlignmentAboveHalfTheAddressSpaceIsRefused) {
    errno = 0;
    EXPECT_EQ(memalign(opaque(SIZE_MAX / 2 + 2), 100), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(MallocFamily, PvallocRoundsUpToAWholePage) {
    void* block = pvalloc(opaque(1));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 4096, 0U);
    EXPECT_GE(malloc_usable_size(block), 4096U);
    free(block);
}

TEST_F(MallocFamily, PvallocJustBelowTheAddressSpaceFailsWithEnomem) {
    errno = 0;
    EXPECT_EQ(pvalloc(opaque(SIZE_MAX - 100)), nullptr);
    EXPECT_EQ(errno, ENOMEM);
}

TEST_F(MallocFamily, SuccessLeavesErrnoAlone) {
    errno = 77;
    for (size_t bytes = 1; bytes < (size_t{64} << 20); bytes *= 3) free(calloc(1, opaque(bytes)));
    EXPECT_EQ(errno, 77);
}

// Each way to make a block, taken back by plain free: all must meet the same allocator.
TEST_F(MallocFamily, EveryBlockIsOursAndFreeTakesIt) {
    for (void* block :
         {__libc_malloc(100), __libc_calloc(3, 100), __libc_realloc(nullptr, 100), __libc_memalign(64, 100),
          __libc_valloc(100), __libc_pvalloc(100), malloc(100), calloc(3, 100), realloc(nullptr, 100),
          reallocarray(nullptr, 3, 100), memalign(64, 100), valloc(100), pvalloc(100), aligned_alloc(64, 128)}) {
        ASSERT_NE(block, nullptr);
        EXPECT_GE(pghot_placement_of(block), 0);
        free(block);
    }
}

TEST_F(MallocFamily, EveryWayToFreeTakesABlockOfMalloc) {
    ASSERT_NE(free_sized, nullptr);
    ASSERT_NE(free_aligned_sized, nullptr);
    __libc_free(malloc(100));
    free_sized(malloc(100), 100);
    free_aligned_sized(aligned_alloc(64, 128), 64, 128);
    auto* grown = static_cast<char*>(__libc_realloc(memset(malloc(10), 'x', 10), 100000));
    ASSERT_NE(grown, nullptr);
    EXPECT_EQ(grown[9], 'x');
    free(grown);
}

TEST_F(MallocFamily, MallinfoCountsWhatIsInUse) {
    const size_t before = mallinfo2().uordblks;
    void* block = malloc(opaque(size_t{32} << 20));
    const struct mallinfo2 info = mallinfo2();
    EXPECT_GE(info.uordblks, before + (size_t{32} << 20));
    EXPECT_GE(info.arena, info.uordblks);
    free(block);
}

TEST_F(MallocFamily, MallocInfoWritesXmlToTheGivenStream) {
    char* text = nullptr;
    size_t bytes = 0;
    FILE* stream = open_memstream(&text, &bytes);
    EXPECT_EQ(malloc_info(0, stream), 0);
    EXPECT_EQ(malloc_info(1, stream), EINVAL);
    fclose(stream);
    EXPECT_NE(std::string(text).find("<malloc version=\"1\">"), std::string::npos);
    free(text);
}

TEST_F(MallocFamily, TrimAnswersThatItGaveSomethingBack) { EXPECT_EQ(malloc_trim(0), 1); }

TEST_F(MallocFamily, WhatIsNotOursHasNoPlacement) {
    int on_stack = 0;
    static int in_data = 0;
    EXPECT_EQ(pghot_placement_of(&on_stack), -1);
    EXPECT_EQ(pghot_placement_of(&in_data), -1);
    EXPECT_EQ(pghot_placement_of(nullptr), -1);
    EXPECT_EQ(pghot_placement_of(reinterpret_cast<void*>(UINTPTR_MAX)), -1);
}

}    // namespace
