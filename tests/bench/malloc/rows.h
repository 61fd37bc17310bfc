// SPDX-License-Identifier: Apache-2.0
// The rows of malloc_bench. Every row does a fixed amount of work with fixed seeds, so that two allocators are compared
// on the same calls; a row with several threads, or with threads of its own, is compared by wall time.
#pragma once

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace malloc_bench {

struct Row {
    std::string name;
    std::function<void(benchmark::State&)> body;
    std::int64_t iterations = 1;    // of each thread
    int threads = 1;
    bool by_wall_time = false;
};

std::vector<Row> small_block_rows();
std::vector<Row> large_block_rows();
std::vector<Row> handover_rows();

inline constexpr std::size_t kKiB = 1024;
inline constexpr std::size_t kMiB = 1024 * kKiB;

// splitmix64: costs about a nanosecond, little beside the calls it chooses sizes for.
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next() {
        std::uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
        mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
        mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
        return mixed ^ (mixed >> 31);
    }

    // From first to last, both possible.
    std::size_t between(std::size_t first, std::size_t last) { return first + next() % (last - first + 1); }

    bool one_in(std::size_t many) { return next() % many == 0; }

private:
    std::uint64_t state_;
};

// The row with one thread, and the same row with each of two threads doing all of it.
inline void add_with_one_and_two_threads(std::vector<Row>& rows, const Row& row) {
    rows.push_back(row);
    rows.push_back(row);
    rows.back().threads = 2;
    rows.back().by_wall_time = true;
}

}    // namespace malloc_bench
