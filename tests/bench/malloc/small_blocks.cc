// SPDX-License-Identifier: Apache-2.0
// One thread's calls, mostly of blocks that allocators keep in a cache of the thread.
#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <numeric>

#include "rows.h"

namespace malloc_bench {
namespace {

using benchmark::DoNotOptimize;
using benchmark::State;

constexpr std::uint64_t kSeed = 1;

void pairs(State& state, std::size_t bytes) {
    for (auto _ : state) {
        void* block = std::malloc(bytes);
        DoNotOptimize(block);
        std::free(block);
    }
}

// Each page is written: zeros that the kernel gives cost nothing until then.
void zeroed_pairs(State& state, std::size_t bytes) {
    for (auto _ : state) {
        auto* block = static_cast<char*>(std::calloc(1, bytes));
        for (std::size_t at = 0; at < bytes; at += 4 * kKiB) block[at] = 1;
        DoNotOptimize(block);
        std::free(block);
    }
}

void aligned_pairs(State& state, std::size_t alignment, std::size_t bytes) {
    for (auto _ : state) {
        void* block = nullptr;
        if (posix_memalign(&block, alignment, bytes) != 0) std::abort();
        DoNotOptimize(block);
        std::free(block);
    }
}

void new_and_sized_delete(State& state, std::size_t bytes) {
    for (auto _ : state) {
        void* block = ::operator new(bytes);
        DoNotOptimize(block);
        ::operator delete(block, bytes);
    }
}

// Drawn before the clock starts.
std::array<std::size_t, 1024> sizes_16_to_1023() {
    std::array<std::size_t, 1024> sizes;
    Random random(kSeed);
    for (std::size_t& size : sizes) size = random.between(16, 1023);
    return sizes;
}

void mixed_pairs(State& state) {
    const auto sizes = sizes_16_to_1023();
    std::size_t next = 0;
    for (auto _ : state) {
        void* block = std::malloc(sizes[next++ % sizes.size()]);
        DoNotOptimize(block);
        std::free(block);
    }
}

// An iteration is 2000 blocks, all allocated, then freed in an order of no pattern.
void batches(State& state) {
    constexpr std::size_t kBlocks = 2000;
    const auto sizes = sizes_16_to_1023();
    std::array<void*, kBlocks> blocks;
    std::array<std::size_t, kBlocks> order;
    std::iota(order.begin(), order.end(), 0);
    Random random(kSeed);
    for (std::size_t left = kBlocks; left > 1; --left) std::swap(order[left - 1], order[random.between(0, left - 1)]);
    for (auto _ : state) {
        for (std::size_t i = 0; i < kBlocks; ++i) blocks[i] = std::malloc(sizes[i % sizes.size()]);
        DoNotOptimize(blocks);
        for (const std::size_t i : order) std::free(blocks[i]);
    }
}

// Most blocks are small, some reach a kilobyte, few several pages: as in programs that build trees and strings.
std::size_t usual_size(Random& random) {
    if (random.one_in(64)) return random.between(1 * kKiB, 8 * kKiB);
    if (random.one_in(8)) return random.between(128, 1 * kKiB);
    return random.between(16, 128);
}

// 4096 live blocks, one replaced at random in each iteration, all of it written.
void churn(State& state) {
    constexpr std::size_t kSlots = 4096;
    Random random(kSeed + static_cast<std::uint64_t>(state.thread_index()));
    std::vector<void*> slots(kSlots, nullptr);
    const auto replace = [&](void*& slot) {
        std::free(slot);
        const std::size_t bytes = usual_size(random);
        slot = std::memset(std::malloc(bytes), 1, bytes);
        DoNotOptimize(slot);
    };
    for (void*& slot : slots) replace(slot);
    for (auto _ : state) replace(slots[random.next() % kSlots]);
    for (void* slot : slots) std::free(slot);
}

// 16 B to 64 KiB, as strings and vectors grow.
void realloc_by_doubling(State& state) {
    for (auto _ : state) {
        char* block = nullptr;
        for (std::size_t bytes = 16; bytes <= 64 * kKiB; bytes *= 2) {
            block = static_cast<char*>(std::realloc(block, bytes));
            block[bytes - 1] = 1;
        }
        std::free(block);
    }
}

// 64 B to 64 KiB, as readers of lines and messages grow.
void realloc_by_64_bytes(State& state) {
    for (auto _ : state) {
        char* block = nullptr;
        for (std::size_t bytes = 64; bytes <= 64 * kKiB; bytes += 64) {
            block = static_cast<char*>(std::realloc(block, bytes));
            block[bytes - 1] = 1;
        }
        std::free(block);
    }
}

}    // namespace

std::vector<Row> small_block_rows() {
    std::vector<Row> rows;
    const auto pairs_of = [](std::size_t bytes) { return [bytes](State& state) { pairs(state, bytes); }; };
    add_with_one_and_two_threads(rows, {"pairs/64", pairs_of(64), 40'000'000});
    for (const std::size_t bytes : {16, 256, 1024}) {
        rows.push_back({"pairs/" + std::to_string(bytes), pairs_of(bytes), 40'000'000});
    }
    rows.push_back({"pairs/4096", pairs_of(4 * kKiB), 25'000'000});
    rows.push_back({"pairs/16384", pairs_of(16 * kKiB), 15'000'000});
    // Above what the thread's cache takes.
    add_with_one_and_two_threads(rows, {"pairs/49152", pairs_of(48 * kKiB), 1'500'000});
    add_with_one_and_two_threads(rows, {"pairs/262144", pairs_of(256 * kKiB), 1'000'000});
    rows.push_back({"pairs/2097152", pairs_of(2 * kMiB), 1'000'000});
    add_with_one_and_two_threads(rows, {"mixed", mixed_pairs, 25'000'000});
    add_with_one_and_two_threads(rows, {"batches", batches, 6'000});
    add_with_one_and_two_threads(rows, {"churn", churn, 6'000'000});
    rows.push_back({"realloc/doubling", realloc_by_doubling, 150'000});
    rows.push_back({"realloc/64_bytes", realloc_by_64_bytes, 6'000});
    rows.push_back({"calloc/64", [](State& state) { zeroed_pairs(state, 64); }, 30'000'000});
    rows.push_back({"calloc/4096", [](State& state) { zeroed_pairs(state, 4 * kKiB); }, 5'000'000});
    rows.push_back({"calloc/1048576", [](State& state) { zeroed_pairs(state, kMiB); }, 1'500});
    rows.push_back({"aligned/64", [](State& state) { aligned_pairs(state, 64, 200); }, 20'000'000});
    rows.push_back({"aligned/4096", [](State& state) { aligned_pairs(state, 4096, 8000); }, 10'000'000});
    add_with_one_and_two_threads(rows,
                                 {"new_delete/64", [](State& state) { new_and_sized_delete(state, 64); }, 40'000'000});
    return rows;
}

}    // namespace malloc_bench
