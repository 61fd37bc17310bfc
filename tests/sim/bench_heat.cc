// SPDX-License-Identifier: Apache-2.0
//
// What a sample costs from the kernel's ring to the heat table, and what planning costs, at the publication's 2.1 M
// pages:
//     build/release/tests/sim/bench_heat
#include <benchmark/benchmark.h>
#include <linux/perf_event.h>
#include <sys/mman.h>

#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/counters.h"
#include "runtime/engine/movable_memory.h"
#include "runtime/kernel/perf_ring.h"
#include "runtime/policy/economy_meter.h"
#include "runtime/policy/promotion_policy.h"
#include "runtime/sources/sample_decoder.h"
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

// Rings as the kernel leaves them: full of load samples from DRAM, random pages of `memory`. Many more than the caches
// hold, since another CPU wrote each of them.
class Rings {
public:
    static constexpr size_t kRings = 1024;
    static constexpr size_t kDataBytes = 8 * kPageBytes;
    static constexpr uint64_t kSpanNs = kNsPerSecond;    // of the samples of all rings

    Rings(uintptr_t memory, uint64_t pages) : data_(kRings * kDataBytes) {
        uint64_t random = 1;
        for (size_t i = 0; i < kRings * kRecords; ++i) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            const uint64_t page = (random >> 32) * pages >> 32;
            write(i, memory + page * kPageBytes + 64, page * 2 >= pages ? 1 : 0);
        }
    }
    // The next ring, full again.
    PerfRing& next() {
        at_ = (at_ + 1) % kRings;
        passes_ += at_ == 0;
        control_.data_head = kRecords * sizeof(Record);
        control_.data_tail = 0;
        ring_.emplace(&control_, std::span<const std::byte>(data_).subspan(at_ * kDataBytes, kDataBytes));
        return *ring_;
    }
    // Since the first pass, which the time stamps in the rings are of.
    uint64_t later_ns() const { return passes_ * kSpanNs; }

    struct Record {
        perf_event_header header{PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, sizeof(Record)};
        uint64_t identifier = 1;
        uint32_t pid = 1, tid = 1;
        uint64_t time = 0;
        uint64_t address = 0;
        uint32_t cpu = 0, reserved = 0;
        uint64_t period = 10000;
        uint64_t weight = 100;
        uint64_t data_src = PERF_MEM_OP_LOAD | 0xdull << PERF_MEM_LVLNUM_SHIFT;
        uint64_t page_bytes = kPageBytes;
    };
    static constexpr size_t kRecords = kDataBytes / sizeof(Record);

private:
    void write(size_t index, uintptr_t address, uint32_t cpu) {
        Record record;
        record.time = kNsPerSecond + index * (kSpanNs / (kRings * kRecords));
        record.address = address;
        record.cpu = cpu;
        std::memcpy(&data_[index / kRecords * kDataBytes + index % kRecords * sizeof record], &record, sizeof record);
    }
    std::vector<std::byte> data_;
    perf_event_mmap_page control_{};
    std::optional<PerfRing> ring_;
    size_t at_ = kRings - 1;
    uint64_t passes_ = ~uint64_t{0};    // the first call of next() begins pass 0
};

// What IbsSource::drain and Sampler::use do with each record, on mappings of this process that nobody touches.
class Drain {
public:
    explicit Drain(uint64_t pages)
        : topology_(published_machine(2)),
          memory_(mmap(nullptr, pages * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                       -1, 0)),
          bytes_(pages * kPageBytes),
          ranges_(65536),
          movable_(files_, topology_, Scope::kProcess, policy_of_thread_, ranges_),
          storage_(HeatTable::bytes_for(pages / kPagesPerChunk + 2)),
          policy_(topology_, {}, storage_),
          rings_(reinterpret_cast<uintptr_t>(memory_), pages) {
        movable_.refresh(TimeNs{kNsPerSecond});
    }
    ~Drain() { munmap(memory_, bytes_); }
    Drain(const Drain&) = delete;
    Drain& operator=(const Drain&) = delete;

    bool is_possible() { return memory_ != MAP_FAILED && movable_.may_move(reinterpret_cast<uintptr_t>(memory_)); }
    void one_ring() {
        rings_.next().drain([this](const PerfRecord& record) { use(record); });
        record_batch();
    }
    uint64_t recorded() const { return policy_.counters().recorded; }

private:
    void use(const PerfRecord& record) {
        RawSample raw;
        counters_.add(Counter::hwhint_total_events);
        if (!decode_sample(record, raw) || !is_user_address(raw.address)) return;
        Sample sample = to_sample(raw, topology_, SampleOrigin::kIbs);
        sample.time = sample.time + rings_.later_ns();
        if (!movable_.may_move(sample.address)) return;
        counters_.add(Counter::hwhint_useful_events);
        counters_.add(Counter::hwhint_dram_accesses);
        economy_.note(sample);
        if (movable_.was_reused(sample.address)) return;
        batch_[batched_++] = sample;
        if (batched_ == batch_.size()) record_batch();
    }
    void record_batch() {
        policy_.record(std::span(batch_).first(batched_));
        batched_ = 0;
    }

    Topology topology_;
    sys::MemoryPolicy policy_of_thread_;
    KernelFiles files_;
    void* memory_;
    size_t bytes_;
    std::vector<AddressRange> ranges_;
    MovableMemory movable_;
    std::vector<std::byte> storage_;
    PromotionPolicy policy_;
    EconomyMeter economy_{10, 50};
    Counters counters_;
    Rings rings_;
    std::array<Sample, 256> batch_{};
    size_t batched_ = 0;
};

void ring_to_table(benchmark::State& state) {
    Drain drain(static_cast<uint64_t>(state.range(0)));
    if (!drain.is_possible()) return state.SkipWithError("the mappings of this process cannot be read");
    for (size_t i = 0; i < 2 * Rings::kRings; ++i) drain.one_ring();
    const uint64_t before = drain.recorded();
    for ([[maybe_unused]] auto _ : state) drain.one_ring();
    state.SetItemsProcessed(static_cast<int64_t>(drain.recorded() - before));
}
BENCHMARK(ring_to_table)->Arg(32768)->Arg(262144)->Arg(2097152)->ArgName("pages");

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
