// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tests/bench/memory.h"

namespace tier_bench {

enum class ZipfOrder { kScattered, kSequential };    // hot pages anywhere, or first

// Draws pages with zipf probabilities by Walker's alias method: one table look-up a draw, whatever the skew. The table
// (8 bytes a page) is read-only and shared by a group's threads.
class ZipfTable {
public:
    ZipfTable(size_t pages, double exponent, ZipfOrder order, uint64_t seed);
    size_t draw(uint64_t random) const;
    // The fewest pages that together take `share` of the draws, hottest first.
    std::vector<size_t> hottest(double share) const;

private:
    struct Entry {
        uint32_t keep_below;    // of 2^32: this page, else the alias
        uint32_t alias;
    };
    double exponent_;
    std::vector<uint32_t> page_of_rank_;
    std::vector<Entry> entries_;
};

// A random page of some memory. zipf may be null: uniform.
struct Field {
    std::span<std::byte> memory;
    const ZipfTable* zipf = nullptr;
};

// One thread's accesses: a random page, a random line in it, loads and stores in turn. What it refers to outlives it.
class AccessLoop {
public:
    AccessLoop(Field own, uint64_t seed) : AccessLoop(own, {}, 0, seed) {}
    // Takes a share of 0 to 1 of its pages from `other`, which may be empty when that is 0.
    AccessLoop(Field own, Field other, double other_share, uint64_t seed);
    void run(uint64_t accesses);
    uint64_t checksum() const { return sum_; }

private:
    template <typename Draw>
    void repeat(uint64_t accesses, Draw draw);

    Field own_;
    Field other_;
    uint64_t other_below_;    // of 2^16: draws below are of the other field
    uint64_t random_;
    uint64_t sum_ = 0;
};

}    // namespace tier_bench
