// SPDX-License-Identifier: Apache-2.0
//
// What a sample costs from source to heat table, and what planning costs, at the publication's 2.1 M pages:
//     build/release/tests/sim/bench_heat
#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "runtime/policy/promotion_policy.h"
#include "tests/sim/simulator.h"

namespace pghot::sim {
namespace {

constexpr uintptr_t kBase = 0x7f0000000000;

// Two groups of threads, each with its half of the memory.
std::vector<Sample> random_samples(uint64_t pages, ServedBy level) {
    Random random(1);
    std::vector<Sample> samples(1 << 20);
    for (Sample& sample : samples) {
        const uint64_t page = random() % pages;
        sample = {.address = kBase + page * kPageBytes + 64,
                  .node = NodeId{static_cast<int16_t>(page * 2 / pages)},
                  .served_by = level};
    }
    return samples;
}

// Pages at home, the steady state: nothing is planned. Time goes on 7 us a sample, 64 CPUs at the published rate. As
// the engine does: a drain's samples are recorded 64 at a time.
void record_samples(benchmark::State& state) {
    const auto pages = static_cast<uint64_t>(state.range(0));
    std::vector<std::byte> storage(HeatTable::bytes_for(pages / kPagesPerChunk + 1));
    PromotionPolicy policy(published_machine(2), {}, storage);
    auto samples = random_samples(pages, ServedBy::kDram);
    TimeNs now{kNsPerSecond};
    size_t i = 0;
    const auto batch = static_cast<size_t>(state.range(1));
    for ([[maybe_unused]] auto _ : state) {
        const auto next = std::span(samples).subspan(i, batch);
        i = (i + batch) & (samples.size() - 1);
        for (Sample& sample : next) sample.time = now = now + 7000;
        if (batch == 1) {
            benchmark::DoNotOptimize(policy.record(next[0]));
        } else {
            benchmark::DoNotOptimize(policy.record(next));
        }
    }
    state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * batch));
    state.counters["ns_per_sample"] = benchmark::Counter(static_cast<double>(state.iterations() * batch) / 1e9,
                                                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
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
