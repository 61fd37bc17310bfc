// SPDX-License-Identifier: Apache-2.0
// mallinfo and its kin: numbers that follow what the program does, asked at any time.

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "tests/preload/language/ways_to_allocate.h"
#include "tests/preload/loaded.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;

class Statistics : public Preloaded {};

std::vector<void*> dirty_blocks(size_t count, size_t bytes) {
    std::vector<void*> blocks;
    blocks.reserve(count);
    for (size_t i = 0; i < count; ++i) blocks.push_back(memset(malloc(bytes), 1, bytes));
    return blocks;
}

void free_all(std::vector<void*>& blocks) {
    for (void* block : blocks) free(block);
    std::vector<void*>().swap(blocks);    // its own memory too
}

size_t resident_bytes() {
    unsigned long pages = 0, resident = 0;
    FILE* file = fopen("/proc/self/statm", "r");
    if (file == nullptr || fscanf(file, "%lu %lu", &pages, &resident) != 2) resident = 0;
    if (file != nullptr) fclose(file);
    return resident * 4096;
}

TEST_F(Statistics, BytesInUseFollowAllocationAndFreeForEverySize) {
    for (size_t bytes : {64, 1000, 20000, 300000, 5000000}) {
        SCOPED_TRACE(bytes);
        const size_t total = 50 * kMiB;
        const size_t before = mallinfo2().uordblks;
        std::vector<void*> blocks = dirty_blocks(total / bytes, bytes);
        const size_t during = mallinfo2().uordblks;
        EXPECT_GE(during, before + total / bytes * bytes);
        EXPECT_LE(during, before + total + total / 2);
        free_all(blocks);
        EXPECT_LE(mallinfo2().uordblks, before + 4 * kMiB);
    }
}

TEST_F(Statistics, TheFieldsAddUpAndTheOldStructureSaysTheSame) {
    std::vector<void*> blocks = dirty_blocks(100, 100000);
    const struct mallinfo2 info = mallinfo2();
    EXPECT_EQ(info.arena + info.hblkhd, info.uordblks + info.fordblks);
    EXPECT_GE(info.uordblks, 10000000U);
    const struct mallinfo old = mallinfo();
    EXPECT_NEAR(static_cast<double>(old.uordblks), static_cast<double>(info.uordblks), 1e6);
    EXPECT_EQ(old.arena + old.hblkhd, old.uordblks + old.fordblks);
    free_all(blocks);
}

// The old structure has room for 2 GiB: more is shown as the most, never as a negative number.
TEST_F(Statistics, TheOldStructureStopsAtItsLargestNumber) {
    void* block = malloc(opaque(size_t{3} << 30));
    if (block == nullptr) GTEST_SKIP() << "3 GiB of address space are not to be had";
    EXPECT_EQ(mallinfo().uordblks, INT32_MAX);
    EXPECT_GE(mallinfo2().uordblks, size_t{3} << 30);
    free(block);
}

TEST_F(Statistics, TrimGivesFreedMemoryBackToTheKernel) {
    std::vector<void*> blocks = dirty_blocks(1000, 100 * 1024);
    const size_t full = resident_bytes();
    free_all(blocks);
    EXPECT_EQ(malloc_trim(0), 1);
    EXPECT_LT(resident_bytes() + 90 * kMiB, full);
}

TEST_F(Statistics, TrimLeavesLiveBlocksWhole) {
    std::vector<void*> blocks = dirty_blocks(640, 100000);
    for (size_t i = 0; i < blocks.size(); i += 2) {
        free(blocks[i]);
        blocks[i] = nullptr;
    }
    malloc_trim(0);
    for (size_t i = 1; i < blocks.size(); i += 2) {
        const auto* bytes = static_cast<const char*>(blocks[i]);
        ASSERT_EQ(bytes[0], 1);
        ASSERT_EQ(memcmp(bytes, bytes + 1, 99999), 0);
    }
    free_all(blocks);
}

TEST_F(Statistics, EveryDocumentedParameterIsTaken) {
    for (int parameter : {M_MXFAST, M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD, M_MMAP_MAX, M_CHECK_ACTION,
                          M_PERTURB, M_ARENA_TEST, M_ARENA_MAX})
        EXPECT_EQ(mallopt(parameter, 64), 1) << parameter;
    void* block = malloc(opaque(100));
    EXPECT_NE(block, nullptr);
    free(block);
}

// Standard error for malloc_stats; the stream it is given, and nothing else, for malloc_info.
TEST_F(Statistics, TextGoesWhereItBelongs) {
    char error_name[] = "/tmp/pghot-statistics-XXXXXX";
    const int error_file = mkstemp(error_name);
    ASSERT_GE(error_file, 0);
    unlink(error_name);
    fflush(nullptr);
    const int kept = dup(2);
    dup2(error_file, 2);
    malloc_stats();
    const off_t of_stats = lseek(error_file, 0, SEEK_END);
    char* text = nullptr;
    size_t text_bytes = 0;
    FILE* stream = open_memstream(&text, &text_bytes);
    const int answer = malloc_info(0, stream);
    fclose(stream);
    const off_t of_both = lseek(error_file, 0, SEEK_END);
    dup2(kept, 2);
    close(kept);
    close(error_file);
    EXPECT_EQ(answer, 0);
    EXPECT_GT(of_stats, 0);
    EXPECT_EQ(of_both, of_stats);
    EXPECT_GT(text_bytes, 0U);
    free(text);
}

TEST_F(Statistics, TheyMayBeAskedWhileOthersAllocate) {
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (unsigned seed = 1; seed <= 3; ++seed)
        threads.emplace_back([&stop, seed] {
            unsigned random = seed;
            while (!stop) free(memset(malloc(1 + static_cast<size_t>(rand_r(&random)) % 60000), 1, 1));
        });
    FILE* nowhere = fopen("/dev/null", "w");
    ASSERT_NE(nowhere, nullptr);
    for (int i = 0; i < 100; ++i) {
        const struct mallinfo2 info = mallinfo2();
        EXPECT_EQ(info.arena + info.hblkhd, info.uordblks + info.fordblks);
        EXPECT_EQ(malloc_info(0, nowhere), 0);
        EXPECT_EQ(malloc_trim(0), 1);
    }
    fclose(nowhere);
    stop = true;
    for (std::thread& thread : threads) thread.join();
}

}    // namespace
