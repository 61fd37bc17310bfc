// SPDX-License-Identifier: Apache-2.0
// Alignments: kept for every size, refused or rounded up as by the GNU C library 2.36.

#include <cerrno>
#include <new>
#include <vector>

#include "tests/preload/language/ways_to_allocate.h"
#include "tests/preload/loaded.h"

namespace {

constexpr size_t kPtrdiffMax = SIZE_MAX / 2;
void* const kUntouched = reinterpret_cast<void*>(0x1234);

class Alignment : public Preloaded {};

using AlignedFunction = void* (*)(size_t alignment, size_t bytes);
constexpr AlignedFunction kAlignedFunctions[] = {memalign, aligned_alloc, __libc_memalign};

// The block keeps its alignment and room to the last byte, and its contents when it grows.
void expect_usable(void* block, size_t alignment, size_t bytes) {
    ASSERT_NE(block, nullptr);
    ASSERT_TRUE(is_aligned(block, alignment)) << block;
    ASSERT_GE(malloc_usable_size(block), bytes);
    memset(block, 0x3c, bytes);
    auto* grown = static_cast<unsigned char*>(realloc(block, bytes + bytes / 2 + 7));
    ASSERT_NE(grown, nullptr);
    for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(grown[i], 0x3c) << i;
    free(grown);
}

TEST_F(Alignment, EveryPowerOfTwoIsKeptForSmallAndLargeSizes) {
    for (size_t alignment = 1; alignment <= (size_t{4} << 20); alignment *= 2) {
        SCOPED_TRACE(alignment);
        for (size_t bytes : {1, 7, 44, 100, 1000, 4097, 70001, 1500001}) {
            SCOPED_TRACE(bytes);
            for (AlignedFunction allocate : kAlignedFunctions)
                expect_usable(allocate(opaque(alignment), bytes), alignment, bytes);
            void* block = nullptr;
            if (alignment < sizeof(void*)) continue;
            ASSERT_EQ(posix_memalign(&block, opaque(alignment), bytes), 0);
            expect_usable(block, alignment, bytes);
        }
    }
}

TEST_F(Alignment, AlignmentsOfMoreThanTheBlockWorkUpToAGigabyte) {
    for (size_t alignment = size_t{8} << 20; alignment <= (size_t{1} << 30); alignment *= 2)
        expect_usable(memalign(opaque(alignment), 100), alignment, 100);
}

TEST_F(Alignment, AnOddAlignmentIsRoundedUp) {
    for (AlignedFunction allocate : kAlignedFunctions) {
        for (size_t alignment : {3, 5, 9, 24, 48, 100, 5000}) {
            size_t power = 1;
            while (power < alignment) power *= 2;
            expect_usable(allocate(opaque(alignment), 100), power, 100);
        }
        expect_usable(allocate(opaque(0), 100), 16, 100);
    }
}

TEST_F(Alignment, MoreThanHalfTheAddressSpaceIsRefusedWithEinval) {
    for (AlignedFunction allocate : kAlignedFunctions) {
        for (size_t alignment : {kPtrdiffMax + 2, SIZE_MAX}) {
            errno = 0;
            EXPECT_EQ(allocate(opaque(alignment), 100), nullptr);
            EXPECT_EQ(errno, EINVAL);
        }
        errno = 0;
        EXPECT_EQ(allocate(opaque(kPtrdiffMax + 1), 100), nullptr);
        EXPECT_EQ(errno, ENOMEM) << "half the address space is an alignment, only not to be had";
    }
}

TEST_F(Alignment, AlignmentAndSizeThatDoNotFitTogetherAreRefusedWithEnomem) {
    for (AlignedFunction allocate : kAlignedFunctions) {
        errno = 0;
        EXPECT_EQ(allocate(opaque(size_t{1} << 62), opaque(kPtrdiffMax - 10)), nullptr);
        EXPECT_EQ(errno, ENOMEM);
    }
}

// A size that is no multiple of the alignment has been allowed since DR 460.
TEST_F(Alignment, AlignedAllocTakesAnySize) { expect_usable(aligned_alloc(opaque(256), 300), 256, 300); }

TEST_F(Alignment, PosixMemalignAnswersByValueAndLeavesThePointerOnFailure) {
    for (size_t alignment : {0, 1, 2, 3, 4, 7, 9, 12, 24, 40, 48, 4095}) {
        SCOPED_TRACE(alignment);
        void* block = kUntouched;
        EXPECT_EQ(posix_memalign(&block, opaque(alignment), 100), EINVAL);
        EXPECT_EQ(block, kUntouched);
    }
    for (size_t bytes : {kPtrdiffMax + 1, SIZE_MAX - 100, SIZE_MAX}) {
        SCOPED_TRACE(bytes);
        void* block = kUntouched;
        EXPECT_EQ(posix_memalign(&block, 64, opaque(bytes)), ENOMEM);
        EXPECT_EQ(block, kUntouched);
    }
}

TEST_F(Alignment, PvallocFillsItsLastPage) {
    for (size_t bytes : {0, 1, 4095, 4096, 4097, 100000}) {
        const size_t whole = (bytes + 4095) / 4096 * 4096;
        for (void* block : {pvalloc(opaque(bytes)), __libc_pvalloc(opaque(bytes))}) {
            ASSERT_NE(block, nullptr);
            EXPECT_TRUE(is_aligned(block, 4096));
            EXPECT_GE(malloc_usable_size(block), whole);
            memset(block, 1, whole);
            free(block);
        }
    }
}

TEST_F(Alignment, AlignedNeighboursDoNotOverlap) {
    std::vector<unsigned char*> blocks;
    for (int i = 0; i < 400; ++i) {
        blocks.push_back(static_cast<unsigned char*>(aligned_alloc(256, 300)));
        memset(blocks.back(), i & 255, 300);
    }
    for (size_t i = 0; i < blocks.size(); ++i) {
        for (size_t at = 0; at < 300; ++at) ASSERT_EQ(blocks[i][at], i & 255) << i;
        free(blocks[i]);
    }
}

struct alignas(4096) Page {
    char bytes[4096];
};
struct alignas(64) Line {
    char bytes[40];
};

TEST_F(Alignment, OverAlignedTypesAreAlignedByNew) {
    for (int i = 0; i < 20; ++i) {
        auto* const page = new Page;
        auto* const lines = new Line[7];
        EXPECT_TRUE(is_aligned(page, 4096));
        EXPECT_TRUE(is_aligned(lines, 64));
        delete page;
        delete[] lines;
    }
}

}    // namespace
