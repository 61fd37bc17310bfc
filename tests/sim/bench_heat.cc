// SPDX-License-Identifier: Apache-2.0
//
// What a sample costs from source to heat table, and what planning costs, at the publication's 2.1 M pages:
//     build/release/tests/sim/bench_heat
#include <benchmark/benchmark.h>

#include <array>
#include <span>
#include <vector>

#include "runtime/policy/promotion_policy.h"
#include "tests/sim/simulator.h"

namespace pghot::sim {
namespace {

constexpr uintptr_t kBase = 0x7f0000000000;

// Samples as a drain hands them on: random pages, two groups of threads with half of the memory each, 7 us apart (64
// CPUs at the published rate). Made on the fly, about 2 ns each, so that the table has the caches for itself.
class Samples {
public:
    explicit Samples(uint64_t pages) : pages_(pages) {}
    std::span<const Sample> next(size_t count) {
        for (Sample& sample : std::span(samples_).first(count)) {
            state_ = state_ * 6364136223846793005u + 1442695040888963407u;
            const uint64_t page = (state_ >> 32) * pages_ >> 32;
            time_ = time_ + 7000;
            sample = {.address = kBase + page * kPageBytes + 64,
                      .time = time_,
                      .node = NodeId{static_cast<int16_t>(page * 2 >= pages_)},
                      .served_by = ServedBy::kDram};
        }
        return std::span(samples_).first(count);
    }

private:
    uint64_t pages_;
    uint64_t state_ = 1;
    TimeNs time_{kNsPerSecond};
    std::array<Sample, 64> samples_{};
};

// Pages at home, the steady state: nothing is planned. One by one, and as a drain's worth of 64.
void record_samples(benchmark::State& state) {
    const auto pages = static_cast<uint64_t>(state.range(0));
    const auto batch = static_cast<size_t>(state.range(1));
    std::vector<std::byte> storage(HeatTable::bytes_for(pages / kPagesPerChunk + 1));
    PromotionPolicy policy(published_machine(2), {}, storage);
    Samples samples(pages);
    for (uint64_t i = 0; i < pages * 2; i += 64) policy.record(samples.next(64));
    for ([[maybe_unused]] auto _ : state) {
        const auto next = samples.next(batch);
        if (batch == 1) {
            benchmark::DoNotOptimize(policy.record(next[0]));
        } else {
            benchmark::DoNotOptimize(policy.record(next));
        }
    }
    state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * batch));
}
BENCHMARK(record_samples)->ArgsProduct({{32768, 262144, 2097152}, {1, 64}})->ArgNames({"pages", "batch"});

// Every chunk is on the ready list and held: what the sampler pays every PGHOT_MIGRATE_SLEEP in the worst case.
void plan_with_all_chunks_held(benchmark::State& state) {
    const auto chunks = static_cast<uint64_t>(state.range(0));
    std::vector<std::byte> storage(HeatTable::bytes_for(chunks));
    PromotionPolicy policy(published_machine(2), {.freq_threshold = 1}, storage);
    const TimeNs now{kNsPerSecond};
    for (uint64_t chunk = 0; chunk < chunks; ++chunk)
        for (uint64_t page = 0; page < 4; ++page)
            policy.record({.address = kBase + chunk * kChunkBytes + page * 100 * kPageBytes,
                           .time = now,
                           .node = NodeId{0},
                           .served_by = ServedBy::kExtMem});
    std::vector<Move> moves(256);
    for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(policy.plan(now, moves));
}
BENCHMARK(plan_with_all_chunks_held)->Arg(64)->Arg(4096);

}    // namespace
}    // namespace pghot::sim

BENCHMARK_MAIN();
