// SPDX-License-Identifier: Apache-2.0
// Blocks that one thread allocates and another frees.
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>

#include "rows.h"

namespace malloc_bench {
namespace {

using benchmark::State;

constexpr std::uint64_t kSeed = 3;

// One producer, one consumer. Handed over in chunks: with single blocks the time is that of one cache line going to and
// fro, whatever the allocator.
class Ring {
public:
    static constexpr std::size_t kChunk = 64;

    template <class Make>
    void put_chunk(Make make) {
        const std::size_t put = put_.load(std::memory_order_relaxed);
        while (put - taken_.load(std::memory_order_acquire) == kSlots) std::this_thread::yield();
        for (std::size_t i = 0; i < kChunk; ++i) slots_[(put + i) % kSlots] = make();
        put_.store(put + kChunk, std::memory_order_release);    // read by take_chunk()
    }

    template <class Use>
    void take_chunk(Use use) {
        const std::size_t taken = taken_.load(std::memory_order_relaxed);
        while (put_.load(std::memory_order_acquire) == taken) std::this_thread::yield();
        for (std::size_t i = 0; i < kChunk; ++i) use(slots_[(taken + i) % kSlots]);
        taken_.store(taken + kChunk, std::memory_order_release);    // read by put_chunk()
    }

private:
    static constexpr std::size_t kSlots = 16 * kChunk;
    std::array<void*, kSlots> slots_{};
    alignas(64) std::atomic<std::size_t> put_{0};
    alignas(64) std::atomic<std::size_t> taken_{0};
};

// An iteration is one chunk: thread 0 allocates it, thread 1 frees it. Both do as many, so the ring ends empty.
void producer_and_consumer(State& state, std::size_t smallest, std::size_t largest) {
    static Ring ring;
    Random random(kSeed);
    if (state.thread_index() != 0) {
        for (auto _ : state) ring.take_chunk(std::free);
        return;
    }
    for (auto _ : state) {
        ring.put_chunk([&] {
            const std::size_t bytes = random.between(smallest, largest);
            auto* block = static_cast<char*>(std::malloc(bytes));
            block[0] = block[bytes - 1] = 1;
            return block;
        });
    }
}

// A block that carries its length in its first word, and in its last, so that a block given out twice is seen.
using Words = std::uint64_t;

Words* new_words(Random& random) {
    std::size_t words = std::size_t{1} << random.between(0, 5);
    if (random.one_in(100)) words *= random.one_in(10) ? (random.one_in(10) ? 10'000 : 1'000) : 100;
    ++words;
    auto* block = static_cast<Words*>(std::malloc(words * sizeof(Words)));
    for (std::size_t i = 1; i < words; ++i) block[i] = words;
    block[0] = words;
    return block;
}

void delete_words(Words* block) {
    if (block == nullptr) return;
    if (block[block[0] - 1] != block[0]) {
        std::fputs("malloc_bench: a block was overwritten by somebody else\n", stderr);
        std::abort();
    }
    std::free(block);
}

using Exchange = std::array<std::atomic<Words*>, 1000>;

// What one thread of a round does: allocates, keeps a third, swaps some with whatever lies in the exchange, frees early
// what it does not keep, and everything at the end.
void stress_round(Exchange& exchange, std::uint64_t seed, std::size_t blocks) {
    Random random(seed);
    std::vector<Words*> kept;
    std::vector<Words*> passing;
    while (kept.size() < blocks / 3 || passing.size() < blocks) {
        if (kept.size() < blocks / 3 && random.one_in(2)) {
            kept.push_back(new_words(random));
        } else {
            passing.push_back(new_words(random));
        }
        if (passing.empty()) continue;
        if (!random.one_in(3)) delete_words(std::exchange(passing[random.next() % passing.size()], nullptr));
        if (random.one_in(4)) {
            Words*& mine = passing[random.next() % passing.size()];
            mine = exchange[random.next() % exchange.size()].exchange(mine, std::memory_order_acq_rel);
        }
    }
    for (Words* block : kept) delete_words(block);
    for (Words* block : passing) delete_words(block);
}

// An iteration is a round: two new threads, which leave blocks in the exchange to those of the next round.
void stress(State& state) {
    static Exchange exchange;
    std::uint64_t seed = kSeed;
    for (auto _ : state) {
        std::thread other([&, mine = ++seed] { stress_round(exchange, mine, 40'000); });
        std::thread another([&, mine = ++seed] { stress_round(exchange, mine, 40'000); });
        other.join();
        another.join();
    }
    for (auto& block : exchange) delete_words(block.exchange(nullptr));
}

}    // namespace

std::vector<Row> handover_rows() {
    const auto of_sizes = [](std::size_t smallest, std::size_t largest) {
        return [=](State& state) { producer_and_consumer(state, smallest, largest); };
    };
    return {{"producer_consumer/small", of_sizes(16, 1023), 60'000, 2, true},
            {"producer_consumer/large", of_sizes(32 * kKiB, 256 * kKiB), 4'000, 2, true},
            {"stress_two_threads", stress, 15, 1, true}};
}

}    // namespace malloc_bench
