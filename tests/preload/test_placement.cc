// SPDX-License-Identifier: Apache-2.0
// Where memory is born: blocks of four sizes made by two threads, registered with their placement and lying where the
// kernel says, not where our tables do. ctest runs this under several values of PGHOT_PLACEMENT; EXPECTED_BIRTH_PLACES
// says what must come of it: "small,large" with local or node:N or slow for blocks below and from 1 MiB.

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/preload/loaded.h"

namespace {

constexpr size_t kLargeBytes = size_t{1} << 20;
constexpr size_t kSizes[] = {100, kLargeBytes, size_t{16} << 20, size_t{1} << 30};

std::string file_text(const std::string& name) {
    std::string text;
    if (FILE* file = fopen(name.c_str(), "r")) {
        char line[256] = "";
        if (fgets(line, sizeof line, file) != nullptr) text = line;
        fclose(file);
    }
    return text;
}

bool node_exists(int node) {
    return access(("/sys/devices/system/node/node" + std::to_string(node)).c_str(), F_OK) == 0;
}

// Nodes with memory and no CPU, by the kernel's own lists: what this test's machines have as their lower tier.
uint64_t nodes_without_cpus() {
    uint64_t nodes = 0;
    for (int node = 0; node < 64; ++node) {
        if (!node_exists(node)) continue;
        const std::string cpus = file_text("/sys/devices/system/node/node" + std::to_string(node) + "/cpulist");
        if (cpus.empty() || cpus == "\n") nodes |= uint64_t{1} << node;
    }
    return nodes;
}

struct Expectation {
    bool local = true;
    uint64_t nodes = 0;    // where not local
};

// Of "local", "node:N" or "slow".
Expectation expectation(const std::string& word) {
    if (word == "local") return {};
    if (word == "slow") return {false, nodes_without_cpus()};
    return {false, uint64_t{1} << std::stoi(word.substr(strlen("node:")))};
}

// Expectations for blocks below and from 1 MiB.
std::pair<Expectation, Expectation> expectations() {
    const char* variable = getenv("EXPECTED_BIRTH_PLACES");
    const std::string text = variable == nullptr ? "local,local" : variable;
    const size_t comma = text.find(',');
    return {expectation(text.substr(0, comma)), expectation(text.substr(comma + 1))};
}

struct Policy {
    int mode = -1;
    uint64_t nodes = 0;
};

Policy policy_at(const void* address) {
    Policy policy;
    unsigned long mask[64] = {};
    EXPECT_EQ(syscall(SYS_get_mempolicy, &policy.mode, mask, sizeof mask * 8, address, MPOL_F_ADDR), 0);
    policy.nodes = mask[0];
    return policy;
}

int node_of_page(void* address) {
    int node = -1;
    EXPECT_EQ(syscall(SYS_move_pages, 0, 1UL, &address, nullptr, &node, 0), 0);
    return node;
}

void expect_born_in(char* block, size_t bytes, const Expectation& expected) {
    for (char* address : {block, block + bytes / 2, block + bytes - 1}) {
        *address = 1;
        const Policy policy = policy_at(address);
        const int node = node_of_page(address);
        if (expected.local) {
            EXPECT_EQ(policy.mode, MPOL_DEFAULT) << bytes;
            continue;
        }
        EXPECT_EQ(policy.nodes, expected.nodes) << bytes;
        ASSERT_GE(node, 0) << bytes;
        EXPECT_NE(expected.nodes >> node & 1, 0U) << bytes << " bytes: the page lies on node " << node;
    }
}

void make_blocks_of_all_sizes() {
    const auto [small, large] = expectations();
    std::vector<char*> blocks;
    for (size_t bytes : kSizes) {
        auto* block = static_cast<char*>(malloc(bytes));
        ASSERT_NE(block, nullptr) << bytes;
        blocks.push_back(block);
        EXPECT_GE(pghot_placement_of(block), 0) << bytes;
        EXPECT_EQ(pghot_placement_of(block), pghot_placement_of(block + bytes - 1)) << bytes;
        expect_born_in(block, bytes, bytes < kLargeBytes ? small : large);
    }
    for (char* block : blocks) free(block);
}

class BirthPlace : public Preloaded {
protected:
    void SetUp() override {
        Preloaded::SetUp();
        const auto [small, large] = expectations();
        for (const Expectation& expected : {small, large})
            if (!expected.local && expected.nodes == 0) GTEST_SKIP() << "no node without CPUs";
        if (syscall(SYS_get_mempolicy, nullptr, nullptr, 0UL, nullptr, 0UL) != 0) GTEST_SKIP() << "no get_mempolicy";
    }
};

TEST_F(BirthPlace, BlocksOfTwoThreadsLieWhereTheRulesSay) {
    std::thread first(make_blocks_of_all_sizes), second(make_blocks_of_all_sizes);
    first.join();
    second.join();
}

TEST_F(BirthPlace, ReallocKeepsThePlacement) {
    const Expectation large = expectations().second;
    auto* block = static_cast<char*>(malloc(4 * kLargeBytes));
    ASSERT_NE(block, nullptr);
    const int born = pghot_placement_of(block);
    for (size_t bytes = 8 * kLargeBytes; bytes <= 64 * kLargeBytes; bytes *= 2) {
        block = static_cast<char*>(realloc(block, bytes));
        ASSERT_NE(block, nullptr);
        EXPECT_EQ(pghot_placement_of(block), born);
        expect_born_in(block, bytes, large);
    }
    block = static_cast<char*>(realloc(block, kLargeBytes / 2));    // shrunk below the rule's size
    EXPECT_EQ(pghot_placement_of(block), born);
    free(block);
}

TEST_F(BirthPlace, AlignedAndZeroedBlocksAreNoException) {
    const Expectation large = expectations().second;
    for (size_t alignment : {size_t{4096}, size_t{4} << 20}) {
        auto* block = static_cast<char*>(aligned_alloc(alignment, 8 * kLargeBytes));
        ASSERT_NE(block, nullptr);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % alignment, 0U);
        expect_born_in(block, 8 * kLargeBytes, large);
        free(block);
    }
    for (int round = 0; round < 3; ++round) {
        auto* block = static_cast<char*>(calloc(1, 8 * kLargeBytes));
        ASSERT_NE(block, nullptr);
        for (size_t at = 0; at < 8 * kLargeBytes; at += 4096) ASSERT_EQ(block[at], 0) << at;
        memset(block, 'x', 8 * kLargeBytes);
        expect_born_in(block, 8 * kLargeBytes, large);
        free(block);
    }
}

TEST_F(BirthPlace, ThreadsThatShareAPlacementDoNotMixTheirBlocks) {
    constexpr int kThreads = 12;    // more than a placement has arenas
    std::vector<std::thread> threads;
    for (int id = 0; id < kThreads; ++id)
        threads.emplace_back([id] {
            unsigned seed = static_cast<unsigned>(id);
            std::vector<std::pair<char*, size_t>> blocks(8);
            for (int round = 0; round < 200; ++round) {
                auto& [block, bytes] = blocks[static_cast<size_t>(rand_r(&seed)) % blocks.size()];
                if (block != nullptr) {
                    ASSERT_EQ(block[0], id);
                    ASSERT_EQ(block[bytes - 1], id);
                }
                free(block);
                bytes = 64 * 1024 + static_cast<size_t>(rand_r(&seed)) % (2 * kLargeBytes);
                block = static_cast<char*>(malloc(bytes));
                ASSERT_NE(block, nullptr);
                block[0] = block[bytes - 1] = static_cast<char>(id);
            }
            for (auto& [block, bytes] : blocks) free(block);
        });
    for (std::thread& thread : threads) thread.join();
}

}    // namespace
