// SPDX-License-Identifier: Apache-2.0
// Blocks that allocators get from the kernel: what counts is how often the memory goes back and is faulted in again.
#include <algorithm>
#include <array>
#include <cstring>

#include "rows.h"

namespace malloc_bench {
namespace {

using benchmark::DoNotOptimize;
using benchmark::State;

constexpr std::uint64_t kSeed = 2;

char* filled_block(std::size_t bytes) {
    void* block = std::memset(std::malloc(bytes), 1, bytes);
    DoNotOptimize(block);
    return static_cast<char*>(block);
}

// 64 live blocks of 32 to 512 KiB. Only the ends are written, so that the calls outweigh the memory.
void large_churn(State& state) {
    std::array<char*, 64> slots{};
    Random random(kSeed + static_cast<std::uint64_t>(state.thread_index()));
    for (auto _ : state) {
        char*& slot = slots[random.next() % slots.size()];
        std::free(slot);
        const std::size_t bytes = random.between(32 * kKiB, 512 * kKiB);
        slot = static_cast<char*>(std::malloc(bytes));
        slot[0] = slot[bytes - 1] = 1;
    }
    for (char* slot : slots) std::free(slot);
}

constexpr std::size_t kTemporaries = 20;
std::size_t temporary_size(Random& random) { return random.between(5 * kMiB, 25 * kMiB); }

// One of 20 buffers replaced in an iteration by one of another size, as expressions of arrays do. The clock starts when
// each has been replaced some times: before, allocators differ in how they grow, which is over after a second.
void temporaries_replaced(State& state) {
    std::array<char*, kTemporaries> buffers;
    Random random(kSeed);
    const auto replace_one = [&] {
        char*& buffer = buffers[random.next() % buffers.size()];
        std::free(buffer);
        buffer = filled_block(temporary_size(random));
    };
    for (char*& buffer : buffers) buffer = filled_block(temporary_size(random));
    const auto warming = std::min<std::size_t>(5 * kTemporaries, state.max_iterations);
    for (std::size_t i = 0; i < warming; ++i) replace_one();
    for (auto _ : state) replace_one();
    for (char* buffer : buffers) std::free(buffer);
}

// The same 20 buffers (shared out among the threads) allocated, written and freed in an iteration, as the automatic
// arrays of a Fortran routine that every time step calls.
void temporaries_of_a_step(State& state) {
    std::vector<std::size_t> sizes(kTemporaries / static_cast<std::size_t>(state.threads()));
    Random random(kSeed + static_cast<std::uint64_t>(state.thread_index()));
    for (std::size_t& size : sizes) size = temporary_size(random);
    std::vector<char*> buffers(sizes.size());
    for (auto _ : state) {
        for (std::size_t i = 0; i < sizes.size(); ++i) buffers[i] = filled_block(sizes[i]);
        for (char* buffer : buffers) std::free(buffer);
    }
}

// An array that grows to 64 MiB by 1 MiB at a time, written as it grows.
void array_growth(State& state) {
    for (auto _ : state) {
        char* array = nullptr;
        for (std::size_t bytes = 0; bytes < 64 * kMiB; bytes += kMiB) {
            array = static_cast<char*>(std::realloc(array, bytes + kMiB));
            std::memset(array + bytes, 1, kMiB);
            DoNotOptimize(array);
        }
        std::free(array);
    }
}

}    // namespace

std::vector<Row> large_block_rows() {
    std::vector<Row> rows;
    add_with_one_and_two_threads(rows, {"large_churn", large_churn, 500'000});
    rows.push_back({"large_temporaries/replaced", temporaries_replaced, 300});
    add_with_one_and_two_threads(rows, {"large_temporaries/step", temporaries_of_a_step, 10});
    rows.push_back({"realloc/array", array_growth, 4});
    return rows;
}

}    // namespace malloc_bench
