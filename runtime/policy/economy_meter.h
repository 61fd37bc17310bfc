// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/policy/payback.h"
#include "runtime/policy/sample.h"

namespace pghot {

// Measures what moves cost and save: latencies of sampled loads by tier, and the mover's CPU time for a page (not its
// waiting for the kernel or a CPU, which costs the program nothing). Read once a
// second; what is older counts half each second, so that a change of phase shows within two or three.
//
// Owned by the sampler.
class EconomyMeter {
public:
    // `dram_distance`, `lower_distance`: of a CPU to its own node and to the nearest lower one, as the firmware says.
    // Stands for DRAM's latency as long as no load was served by DRAM.
    EconomyMeter(unsigned dram_distance, unsigned lower_distance)
        : dram_distance_(dram_distance), lower_distance_(lower_distance) {}

    void note(const Sample& sample);
    // `mover_cpu_ns` and `moved_pages` since the start; `period` operations between two samples.
    MoveEconomy read(uint64_t period, uint64_t mover_cpu_ns, uint64_t moved_pages);

private:
    struct Mean {
        uint64_t sum = 0;
        uint64_t count = 0;
        void halve() { sum /= 2, count /= 2; }
        uint64_t value() const { return count == 0 ? 0 : sum / count; }
    };
    unsigned dram_distance_;
    unsigned lower_distance_;
    Mean dram_cycles_;
    Mean lower_cycles_;
    Mean page_ns_;
    uint64_t mover_cpu_ns_ = 0;
    uint64_t moved_pages_ = 0;
};

}    // namespace pghot
