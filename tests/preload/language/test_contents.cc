// SPDX-License-Identifier: Apache-2.0
// What lies in a block: zeros where they are promised, what the program wrote everywhere else.

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <random>
#include <vector>

#include "tests/preload/language/ways_to_allocate.h"
#include "tests/preload/loaded.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;

class Contents : public Preloaded {};

struct Free {
    void operator()(void* block) const { free(block); }
};
using Words = std::unique_ptr<uint64_t[], Free>;

Words words_of(size_t bytes) { return Words(static_cast<uint64_t*>(malloc(opaque(bytes)))); }

void fill(uint64_t* words, size_t bytes, uint64_t seed) {
    for (size_t i = 0; i < bytes / 8; ++i) words[i] = seed + i;
}

testing::AssertionResult holds(const uint64_t* words, size_t bytes, uint64_t seed) {
    for (size_t i = 0; i < bytes / 8; ++i)
        if (words[i] != seed + i) return testing::AssertionFailure() << "other bytes at " << i * 8 << " of " << bytes;
    return testing::AssertionSuccess();
}

testing::AssertionResult is_zero(const void* block, size_t bytes) {
    const auto* at = static_cast<const unsigned char*>(block);
    if (bytes == 0 || (at[0] == 0 && memcmp(at, at + 1, bytes - 1) == 0)) return testing::AssertionSuccess();
    return testing::AssertionFailure() << bytes << " bytes that are not all zero";
}

// Blocks full of ones go back to the allocator; the same sizes asked of calloc come out of them.
void expect_zeros_after_dirt(bool give_pages_back) {
    for (size_t bytes = 8; bytes <= 64 * kMiB; bytes = bytes * 2 + 8) {
        SCOPED_TRACE(bytes);
        const size_t count = bytes < 100000 ? 50 : 2;
        std::vector<void*> blocks;
        for (size_t i = 0; i < count; ++i) blocks.push_back(memset(malloc(opaque(bytes)), 0xff, bytes));
        for (void* block : blocks) free(block);
        blocks.clear();
        if (give_pages_back) malloc_trim(0);
        for (size_t i = 0; i < count; ++i) {
            blocks.push_back(i % 2 == 0 ? calloc(1, opaque(bytes)) : __libc_calloc(opaque(bytes), 1));
            ASSERT_NE(blocks.back(), nullptr);
            ASSERT_TRUE(is_zero(blocks.back(), bytes));
        }
        for (void* block : blocks) free(block);
    }
}

TEST_F(Contents, CallocGivesZerosAfterDirtOfTheSameSize) { expect_zeros_after_dirt(false); }
TEST_F(Contents, CallocGivesZerosAfterDirtThatWentBackToTheKernel) { expect_zeros_after_dirt(true); }

// Locked pages cannot be dropped: an allocator that takes a dropped page for a zeroed one would hand out old bytes.
TEST_F(Contents, CallocGivesZerosUnderMlockall) {
    if (mlockall(MCL_FUTURE) != 0) GTEST_SKIP() << "mlockall is refused here: " << strerror(errno);
    void* probe = mmap(nullptr, 512 * kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (probe == MAP_FAILED) GTEST_SKIP() << "too little memory may be locked here";
    munmap(probe, 512 * kMiB);
    expect_zeros_after_dirt(true);
    expect_zeros_after_dirt(false);
    munlockall();
}

TEST_F(Contents, CallocGivesZerosInsideADirtyBlockOfAnotherSize) {
    for (size_t whole = kMiB; whole <= 64 * kMiB; whole *= 4) {
        free(memset(malloc(opaque(whole)), 0xff, whole));
        std::vector<void*> parts;
        for (size_t bytes = whole / 16; bytes >= 64; bytes /= 3) {
            parts.push_back(calloc(opaque(bytes), 1));
            ASSERT_TRUE(is_zero(parts.back(), bytes));
        }
        for (void* part : parts) free(part);
    }
}

// Up and down across the edge of each size class: just filling it, one byte more, and back.
TEST_F(Contents, ReallocKeepsThemAcrossEveryClassBoundary) {
    for (size_t asked = 8; asked <= 64 * kMiB;) {
        Words words = words_of(asked);
        ASSERT_NE(words, nullptr);
        const size_t full = malloc_usable_size(words.get());
        SCOPED_TRACE(full);
        fill(words.get(), full, asked);
        words.reset(static_cast<uint64_t*>(realloc(words.release(), opaque(full + 1))));
        ASSERT_NE(words, nullptr);
        ASSERT_TRUE(holds(words.get(), full, asked));
        words.reset(static_cast<uint64_t*>(realloc(words.release(), opaque(full))));
        ASSERT_TRUE(holds(words.get(), full, asked));
        words.reset(static_cast<uint64_t*>(realloc(words.release(), opaque(full / 2 + 1))));
        ASSERT_TRUE(holds(words.get(), full / 2, asked));
        asked = std::max(full + 1, asked + asked / 16);    // an allocator may have more classes than jemalloc
    }
}

TEST_F(Contents, ReallocKeepsThemOverFarJumps) {
    constexpr size_t kSizes[] = {8, 100, 4096, 16384, 40000, 300000, kMiB, 5 * kMiB, 33 * kMiB};
    for (size_t from : kSizes)
        for (size_t to : kSizes) {
            SCOPED_TRACE(testing::Message() << from << " to " << to);
            Words words = words_of(from);
            const Words neighbour = words_of(from);
            fill(words.get(), from, 1);
            fill(neighbour.get(), from, 2);
            words.reset(static_cast<uint64_t*>(realloc(words.release(), opaque(to))));
            ASSERT_NE(words, nullptr);
            ASSERT_TRUE(holds(words.get(), std::min(from, to), 1));
            fill(words.get(), to, 3);
            ASSERT_TRUE(holds(neighbour.get(), from, 2));
        }
}

TEST_F(Contents, ManyBlocksThatGrowAndShrinkAtRandomKeepTheirs) {
    struct Block {
        Words words;
        size_t bytes = 0;
    };
    std::mt19937 random(7);
    std::vector<Block> blocks(60);
    for (uint64_t round = 0; round < 6000; ++round) {
        const size_t index = random() % blocks.size();
        Block& block = blocks[index];
        const size_t bytes = size_t{8} << random() % (round % 50 == 0 ? 20 : 12);
        const size_t wanted = bytes + random() % bytes / 8 * 8;
        block.words.reset(static_cast<uint64_t*>(realloc(block.words.release(), wanted)));
        ASSERT_NE(block.words, nullptr);
        ASSERT_TRUE(holds(block.words.get(), std::min(block.bytes, wanted), index << 32)) << "round " << round;
        fill(block.words.get(), wanted, index << 32);
        block.bytes = wanted;
    }
}

TEST_F(Contents, TheWholeUsableSizeIsTheProgramsAndStays) {
    struct Block {
        unsigned char* bytes;
        size_t usable;
    };
    std::vector<Block> blocks;
    size_t asked = 1;
    for (int round = 0; round < 500; ++round, asked = asked * 17 % 70001 + 1) {
        const WayToAllocate& way = kWaysToAllocate[static_cast<size_t>(round) % std::size(kWaysToAllocate)];
        auto* bytes = static_cast<unsigned char*>(way.make(asked));
        const size_t usable = malloc_usable_size(bytes);
        ASSERT_GE(usable, asked) << way.name;
        memset(bytes, round & 255, usable);
        blocks.push_back({bytes, usable});
    }
    for (size_t i = 0; i < blocks.size(); ++i) {
        auto [bytes, usable] = blocks[i];
        ASSERT_EQ(malloc_usable_size(bytes), usable);
        bytes = static_cast<unsigned char*>(realloc(bytes, opaque(usable)));    // room that it has already
        ASSERT_GE(malloc_usable_size(bytes), usable);
        for (size_t at = 0; at < usable; ++at) ASSERT_EQ(bytes[at], i & 255) << at << " of " << usable;
        free(bytes);
    }
}

}    // namespace
