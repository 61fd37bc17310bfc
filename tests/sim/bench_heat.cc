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

std::vector<Sample> random_samples(uint64_t pages, ServedBy level) {
    Random random(1);
    std::vector<Sample> samples(1 << 16);
    for (Sample& sample : samples)
        sample = {.address = kBase + random() % pages * kPageBytes + 64,
                  .node = NodeId{static_cast<int16_t>(random() % 2)},
                  .served_by = level};
    return samples;
}

// Pages at home, the steady state: nothing is planned. Time goes on 7 us a sample, 64 CPUs at the published rate.
void record_samples(benchmark::State& state) {
    const auto pages = static_cast<uint64_t>(state.range(0));
    std::vector<std::byte> storage(HeatTable::bytes_for(pages / kPagesPerChunk + 1));
    PromotionPolicy policy(published_machine(2), {}, storage);
    auto samples = random_samples(pages, ServedBy::kDram);
    TimeNs now{kNsPerSecond};
    size_t i = 0;
    for (auto _ : state) {
        Sample& sample = samples[i++ & (samples.size() - 1)];
        sample.time = now = now + 7000;
        sample.address ^= kPageBytes * (i & 255);    // other pages in each round
        benchmark::DoNotOptimize(policy.record(sample));
    }
    state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}
BENCHMARK(record_samples)->Arg(32768)->Arg(262144)->Arg(2097152);

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
    for (auto _ : state) benchmark::DoNotOptimize(policy.plan(now, moves));
}
BENCHMARK(plan_with_all_chunks_held)->Arg(64)->Arg(4096);

}    // namespace
}    // namespace pghot::sim

BENCHMARK_MAIN();
