// SPDX-License-Identifier: Apache-2.0
// Under RLIMIT_AS or RLIMIT_DATA, as batch systems set them (LIMITED=as|data says which): nearly all of the limit can
// be had, what was freed can be had again in any other size and by any thread, and what cannot fit is an ordinary
// failure. The library looks at its limits once, at start: so the program sets them and starts itself anew.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <latch>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/preload/loaded.h"

namespace {

constexpr size_t kMib = 1 << 20;
constexpr size_t kLimit = 1024 * kMib;

class MemoryLimit : public Preloaded {
protected:
    void SetUp() override {
        Preloaded::SetUp();
        if (HasFatalFailure()) return;
        ASSERT_NE(getenv("LIMITED"), nullptr) << "run with LIMITED=as or LIMITED=data";
        errno = 0;
    }
};

struct Blocks {
    Blocks() { blocks.reserve(kLimit / 4096); }
    ~Blocks() {
        for (void* block : blocks) free(block);
    }
    Blocks(const Blocks&) = delete;
    // Takes blocks until there is none, or `wanted` bytes; how many bytes there were.
    size_t fill(size_t bytes, size_t wanted = kLimit) {
        size_t had = 0;
        for (; had + bytes <= wanted; had += bytes) {
            void* block = malloc(bytes);
            if (block == nullptr) break;
            *static_cast<char*>(block) = 1;
            blocks.push_back(block);
        }
        return had;
    }
    std::vector<void*> blocks;
};

size_t fill_and_free(size_t bytes, size_t wanted = kLimit) { return Blocks().fill(bytes, wanted); }

// Grows a block by a quarter each time; the size at which it was refused or reached `top`.
size_t grow_step_by_step(size_t top) {
    size_t bytes = kMib;
    char* block = static_cast<char*>(malloc(bytes));
    while (block != nullptr && bytes < top) {
        const size_t more = bytes + bytes / 4;
        char* grown = static_cast<char*>(realloc(block, more));
        if (grown == nullptr) break;
        grown[more - 1] = 1;
        block = grown;
        bytes = more;
    }
    free(block);
    return bytes;
}

TEST_F(MemoryLimit, ABlockGrowsStepByStepToTwoFifthsOfTheLimit) {
    constexpr size_t kTop = kLimit * 2 / 5;    // old and new block together are below the limit
    for (int again = 0; again < 2; ++again) EXPECT_GE(grow_step_by_step(kTop), kTop);
}

TEST_F(MemoryLimit, WhatCannotFitIsAFailureAndEverythingGoesOn) {
    volatile size_t too_much = kLimit;
    EXPECT_EQ(malloc(too_much), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    void* block = malloc(kLimit / 2);
    ASSERT_NE(block, nullptr);
    EXPECT_GE(pghot_placement_of(block), 0);
    errno = 0;
    EXPECT_EQ(realloc(block, too_much), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    memset(block, 1, kMib);    // a refused realloc leaves the block alone
    free(block);
}

TEST_F(MemoryLimit, NearlyAllOfItCanBeHadAgainAndAgainInOtherSizes) {
    for (size_t bytes : {kMib, 3 * kMib, 64 * kMib, size_t{100000}, size_t{20000}, 300 * kMib, kMib})
        EXPECT_GE(fill_and_free(bytes), kLimit * 3 / 4 / bytes * bytes) << "blocks of " << bytes;
}

TEST_F(MemoryLimit, HolesBetweenBlocksAreUsedAgain) {
    Blocks kept;
    const size_t had = kept.fill(kMib);
    for (size_t i = 0; i < kept.blocks.size(); i += 2) {
        free(kept.blocks[i]);
        kept.blocks[i] = nullptr;
    }
    EXPECT_GE(fill_and_free(kMib), had * 45 / 100);
}

TEST_F(MemoryLimit, ThousandsOfCyclesDoNotScatterTheAddresses) {
    std::mt19937 random(20261201);
    std::vector<std::pair<void*, size_t>> alive;
    size_t bytes_alive = 0;
    for (int cycle = 0; cycle < 5000; ++cycle) {
        const size_t bytes = kMib / 16 << random() % 11;    // 64 KiB to 64 MiB
        while (bytes_alive + bytes > kLimit / 3) {
            const size_t victim = random() % alive.size();
            free(alive[victim].first);
            bytes_alive -= alive[victim].second;
            alive[victim] = alive.back();
            alive.pop_back();
        }
        void* block = malloc(bytes + random() % 4096);
        ASSERT_NE(block, nullptr) << bytes << " bytes in cycle " << cycle << " beside " << bytes_alive;
        alive.emplace_back(block, bytes);
        bytes_alive += bytes;
    }
    for (const auto& [block, bytes] : alive) free(block);
    EXPECT_GE(fill_and_free(kLimit / 2), kLimit / 2);
}

// A thread that did `work` and lives on: what a thread leaves behind when it ends is tidied up then.
class ThreadThatStays {
public:
    template <typename Work>
    explicit ThreadThatStays(Work work) {
        thread_ = std::thread([this, work] {
            work();
            worked_.count_down();
            may_end_.wait();
        });
        worked_.wait();
    }
    ~ThreadThatStays() {
        may_end_.count_down();
        thread_.join();
    }
    ThreadThatStays(const ThreadThatStays&) = delete;

private:
    std::latch worked_{1};
    std::latch may_end_{1};
    std::thread thread_;
};

TEST_F(MemoryLimit, WhatOneThreadFreedAnotherCanHaveInSmallBlocks) {
    Blocks small;    // before the other thread has it all: its list of blocks is no small block
    const ThreadThatStays other([] { fill_and_free(4 * kMib); });
    EXPECT_GE(small.fill(2000, kLimit / 4), kLimit / 4 - 2000);
}

TEST_F(MemoryLimit, WhatOneThreadFreedInSmallBlocksAnotherCanHaveInOne) {
    const ThreadThatStays other([] { fill_and_free(2000, kLimit / 4); });
    EXPECT_GE(fill_and_free(kLimit * 17 / 20), kLimit * 17 / 20);
}

TEST_F(MemoryLimit, AProgramThatLowersItsLimitKeepsWhatItFreed) {
    fill_and_free(4 * kMib, kLimit / 2);
    rlimit lower{};
    const auto resource = std::string_view(getenv("LIMITED")) == "data" ? RLIMIT_DATA : RLIMIT_AS;
    ASSERT_EQ(getrlimit(resource, &lower), 0);
    lower.rlim_cur = kLimit / 4 * 3;
    ASSERT_EQ(setrlimit(resource, &lower), 0);
    EXPECT_GE(fill_and_free(kLimit / 2), kLimit / 2);
}

void start_again_with_limit(char** arguments) {
    const char* limited = getenv("LIMITED");
    rlimit limit{};
    if (limited == nullptr) return;    // only asked for its tests
    const auto resource = std::string_view(limited) == "data" ? RLIMIT_DATA : RLIMIT_AS;
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == kLimit) return;
    limit = {kLimit, kLimit};
    if (setrlimit(resource, &limit) == 0) execv("/proc/self/exe", arguments);
    perror("setrlimit and exec");
    _exit(1);
}

}    // namespace

int main(int count, char** arguments) {
    start_again_with_limit(arguments);
    testing::InitGoogleTest(&count, arguments);
    return RUN_ALL_TESTS();
}
