// SPDX-License-Identifier: Apache-2.0
// Sizes at both ends for every C function that hands out memory: nothing, and more than there can be. What errno says.

#include <cerrno>
#include <vector>

#include "tests/preload/language/ways_to_allocate.h"
#include "tests/preload/loaded.h"

namespace {

constexpr size_t kPtrdiffMax = SIZE_MAX / 2;
constexpr int kMarkedErrno = 77;

class Sizes : public Preloaded {};

TEST_F(Sizes, ZeroBytesGiveBlocksOfTheirOwn) {
    for (const WayToAllocate& way : kWaysToAllocate) {
        SCOPED_TRACE(way.name);
        std::vector<void*> blocks;
        for (int i = 0; i < 48; ++i) {
            void* block = way.make(opaque(0));
            ASSERT_NE(block, nullptr);
            EXPECT_TRUE(is_aligned(block, way.alignment));
            for (void* other : blocks) ASSERT_NE(block, other);
            blocks.push_back(block);
        }
        for (void* block : blocks) free(block);
    }
}

TEST_F(Sizes, EveryBlockIsAlignedForEveryBasicType) {
    for (const WayToAllocate& way : kWaysToAllocate) {
        SCOPED_TRACE(way.name);
        for (size_t bytes : {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 24, 40, 100, 5000, 70000, 3000000}) {
            std::vector<void*> blocks;
            for (int i = 0; i < 9; ++i) blocks.push_back(way.make(opaque(bytes)));
            for (void* block : blocks) {
                ASSERT_NE(block, nullptr);
                EXPECT_TRUE(is_aligned(block, way.alignment)) << bytes << " bytes at " << block;
                EXPECT_GE(malloc_usable_size(block), bytes);
                free(block);
            }
        }
    }
}

TEST_F(Sizes, MoreThanPtrdiffMaxIsRefusedWithEnomem) {
    for (const WayToAllocate& way : kWaysToAllocate) {
        SCOPED_TRACE(way.name);
        for (size_t bytes : {kPtrdiffMax + 1, kPtrdiffMax + 4096, SIZE_MAX - 8192, SIZE_MAX - 4095, SIZE_MAX - 63,
                             SIZE_MAX - 15, SIZE_MAX}) {
            errno = 0;
            EXPECT_EQ(way.make(opaque(bytes)), nullptr) << bytes;
            const bool by_value = way.make == make_by_posix_memalign;
            EXPECT_EQ(errno, by_value ? errno : ENOMEM) << bytes;
        }
    }
}

TEST_F(Sizes, ProductsThatOverflowAreRefusedWithEnomem) {
    constexpr size_t kHalf = kPtrdiffMax + 1;
    constexpr size_t kProducts[][2] = {
        {kHalf, 2},          {2, kHalf}, {kHalf, 3}, {SIZE_MAX / 3 + 1, 3}, {size_t{1} << 32, size_t{1} << 32},
        {SIZE_MAX, SIZE_MAX}};
    for (const auto& [count, bytes] : kProducts) {
        SCOPED_TRACE(count);
        errno = 0;
        EXPECT_EQ(calloc(opaque(count), opaque(bytes)), nullptr);
        EXPECT_EQ(errno, ENOMEM);
        errno = 0;
        EXPECT_EQ(__libc_calloc(opaque(count), opaque(bytes)), nullptr);
        EXPECT_EQ(errno, ENOMEM);
        errno = 0;
        EXPECT_EQ(reallocarray(nullptr, opaque(count), opaque(bytes)), nullptr);
        EXPECT_EQ(errno, ENOMEM);
    }
}

TEST_F(Sizes, EverySuccessAndEveryFreeLeavesErrnoAlone) {
    for (const WayToAllocate& way : kWaysToAllocate) {
        SCOPED_TRACE(way.name);
        for (size_t bytes = 0; bytes <= (size_t{64} << 20); bytes = bytes * 4 + 1) {
            errno = kMarkedErrno;
            auto* block = static_cast<char*>(way.make(opaque(bytes)));
            ASSERT_EQ(errno, kMarkedErrno) << bytes;
            ASSERT_NE(block, nullptr);
            if (bytes > 0) block[0] = block[bytes - 1] = 1;
            errno = kMarkedErrno;
            block = static_cast<char*>(realloc(block, opaque(bytes + bytes / 2 + 1)));
            ASSERT_EQ(errno, kMarkedErrno) << bytes;
            free(block);
            ASSERT_EQ(errno, kMarkedErrno) << bytes;
        }
    }
}

TEST_F(Sizes, QuestionsLeaveErrnoAlone) {
    void* block = malloc(opaque(100000));
    errno = kMarkedErrno;
    free(nullptr);
    EXPECT_EQ(malloc_usable_size(nullptr), 0U);
    EXPECT_GE(malloc_usable_size(block), 100000U);
    static_cast<void>(mallinfo2());
    malloc_trim(0);
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    EXPECT_EQ(errno, kMarkedErrno);
    free(block);
}

// As the GNU C library: the block is freed, and null is no failure.
TEST_F(Sizes, ReallocToZeroFreesBlocksOfEverySize) {
    for (size_t bytes : {1, 100, 5000, 70000, 3000000, 40000000}) {
        SCOPED_TRACE(bytes);
        errno = kMarkedErrno;
        EXPECT_EQ(realloc(malloc(bytes), opaque(0)), nullptr);
        EXPECT_EQ(__libc_realloc(malloc(bytes), opaque(0)), nullptr);
        EXPECT_EQ(reallocarray(malloc(bytes), opaque(0), 8), nullptr);
        EXPECT_EQ(reallocarray(malloc(bytes), 8, opaque(0)), nullptr);
        EXPECT_EQ(errno, kMarkedErrno);
    }
    const size_t in_use = mallinfo2().uordblks;
    for (int i = 0; i < 2000; ++i) ASSERT_EQ(realloc(malloc(opaque(8192)), opaque(0)), nullptr);
    EXPECT_LT(mallinfo2().uordblks, in_use + (size_t{1} << 20)) << "a block stays for each call";
}

TEST_F(Sizes, FailedReallocLeavesTheBlockWholeAndGrowable) {
    for (size_t bytes = 24; bytes <= (size_t{16} << 20); bytes *= 8) {
        SCOPED_TRACE(bytes);
        auto* block = static_cast<unsigned char*>(malloc(bytes));
        ASSERT_NE(block, nullptr);
        memset(block, 0x5a, bytes);
        for (size_t wanted : {kPtrdiffMax + 1, SIZE_MAX - 4096, SIZE_MAX}) {
            errno = 0;
            EXPECT_EQ(realloc(block, opaque(wanted)), nullptr);
            EXPECT_EQ(errno, ENOMEM);
            errno = 0;
            EXPECT_EQ(__libc_realloc(block, opaque(wanted)), nullptr);
            EXPECT_EQ(errno, ENOMEM);
        }
        errno = 0;
        EXPECT_EQ(reallocarray(block, opaque(kPtrdiffMax + 1), opaque(2)), nullptr);
        EXPECT_EQ(errno, ENOMEM);
        block = static_cast<unsigned char*>(realloc(block, bytes + 1));
        ASSERT_NE(block, nullptr);
        for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(block[i], 0x5a) << i;
        free(block);
    }
}

}    // namespace
