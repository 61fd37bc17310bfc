// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tests/bench/options.h"

namespace tier_bench {

// Draws pages with zipf probabilities by Walker's alias method: one table look-up a draw, whatever the skew. The table
// (8 bytes a page) is read-only and shared by a group's threads.
class ZipfTable {
public:
    ZipfTable(size_t pages, double exponent, ZipfOrder order, uint64_t seed);
    size_t draw(uint64_t random) const;

private:
    struct Entry {
        uint32_t keep_below;    // of 2^32: this page, else the alias
        uint32_t alias;
    };
    std::vector<Entry> entries_;
};

// One thread's accesses: a random page, a random line in it, loads and stores in turn.
class AccessLoop {
public:
    // zipf may be null: uniform. memory and zipf must outlive the loop.
    AccessLoop(std::span<std::byte> memory, const ZipfTable* zipf, uint64_t seed);
    void run(uint64_t accesses);
    uint64_t checksum() const { return sum_; }

private:
    std::span<std::byte> memory_;
    const ZipfTable* zipf_;
    uint64_t random_;
    uint64_t sum_ = 0;
};

}    // namespace tier_bench
