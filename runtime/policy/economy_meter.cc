// SPDX-License-Identifier: Apache-2.0
#include "runtime/policy/economy_meter.h"

namespace pghot {
namespace {

// DcMissLat counts core clocks; server parts run at 2.4 to 4 GHz. A third off does not change a decision that weighs
// seconds against milliseconds.
constexpr int64_t kCyclesPerNs = 3;
// Loads that a core waits for at the same time: a sampled latency is not all waiting. Measured overlap is 1 to 2 for
// random access, more for sweeps, which prefetchers serve.
constexpr int64_t kOverlap = 2;
constexpr uint64_t kMinLoads = 16;
constexpr uint64_t kMinPages = 64;

}    // namespace

void EconomyMeter::note(const Sample& sample) {
    if (sample.latency_cycles == 0) return;
    if (sample.served_by == ServedBy::kDram) dram_cycles_.sum += sample.latency_cycles, ++dram_cycles_.count;
    if (sample.served_by == ServedBy::kExtMem) lower_cycles_.sum += sample.latency_cycles, ++lower_cycles_.count;
}

MoveEconomy EconomyMeter::read(uint64_t period, uint64_t mover_cpu_ns, uint64_t moved_pages) {
    page_ns_.sum += mover_cpu_ns - mover_cpu_ns_;
    page_ns_.count += moved_pages - moved_pages_;
    mover_cpu_ns_ = mover_cpu_ns;
    moved_pages_ = moved_pages;
    MoveEconomy economy;
    if (page_ns_.count >= kMinPages) economy.page_ns = page_ns_.value();
    if (lower_cycles_.count >= kMinLoads) {
        const auto lower = static_cast<int64_t>(lower_cycles_.value());
        const int64_t dram = dram_cycles_.count >= kMinLoads ? static_cast<int64_t>(dram_cycles_.value())
                                                             : lower * dram_distance_ / lower_distance_;
        economy.sample_gain_ns = static_cast<int64_t>(period) * (lower - dram) / (kCyclesPerNs * kOverlap);
        economy.gain_known = true;
    }
    dram_cycles_.halve();
    lower_cycles_.halve();
    if (page_ns_.count >= 2 * kMinPages) page_ns_.halve();
    return economy;
}

}    // namespace pghot
