// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/sim/scenario.h"

namespace pghot::sim {

// What was published of the micro-benchmark (24 September 2026): 64 threads on one node, 8 GiB on the expander at
// first, random accesses by pages, a fixed number of them.
namespace published {
inline constexpr unsigned kThreads = 64;
inline constexpr uint64_t kPages = 2097152;
inline constexpr uint64_t kSamples = 5991177;    // hardware hints until the program ended
inline constexpr double kDramSamples = 3716462;
inline constexpr double kExpanderSamples = 1886078;
inline constexpr uint64_t kPromoted = 1981045;
inline constexpr double kStaysSeconds = 98.49;     // NUMAB0: all accesses on the expander
inline constexpr double kKernelSeconds = 38.64;    // NUMAB2
inline constexpr double kSeconds = 44.27;          // the kernel's infrastructure with IBS, freq_threshold 1
// Not published but follows: time of an access to DRAM in those to the expander, with the link as loaded as it was.
// seconds / kStaysSeconds = expander share + DRAM share x cost.
inline constexpr double kExpanderShare = kExpanderSamples / (kExpanderSamples + kDramSamples);
inline constexpr double kDramCost = (kSeconds / kStaysSeconds - kExpanderShare) / (1 - kExpanderShare);
static_assert(kDramCost > 0.170 && kDramCost < 0.171);
// Samples are a share of accesses, so this is the rate as long as all memory is on the expander.
inline constexpr double kSamplesPerSecond = kSamples / kStaysSeconds / kThreads;
// What the accesses behind one sample would have saved in DRAM: 64 threads, the time that DRAM saves of the whole run.
inline constexpr double kSampleGainNs = kStaysSeconds * 1e9 * kThreads * (1 - kDramCost) / kSamples;
}    // namespace published

// The micro-benchmark under movers that are not ours, as models: every page moves the moment that it may.
struct Reference {
    double seconds = 0;    // until the fixed number of accesses was made
    double seconds_to_90 = 0;
    double dram = 0;    // share of accesses
    uint64_t pages_moved = 0;
};
// Each page comes home with its first sample: what the published run with IBS did.
Reference first_sample_moves(uint64_t seed);
// Pages come home with the first access after the scanner passed, 256 MiB a second (scan_size_mb, scan_period_min_ms)
// from the first second on (scan_delay_ms). Faults cost nothing here.
Reference kernel_scan();

// In all scenarios: moves take the time of the emulated machine's model (tests/rig/model.h), 100 us a call and 2 us a
// page. Memory is in large blocks of 1 GiB, which the policy knows.
Scenario micro_benchmark(const PolicyParameters& policy, uint64_t seed);
// Each rank works on its own memory; one budget for all.
Scenario job_of_ranks(const PolicyParameters& policy, unsigned ranks, uint64_t pages_a_rank, uint32_t rate_limit_mbps,
                      uint64_t seed);
// 64 threads on one node; of `pages`, the first `hot_pages` have 19 of 20 accesses. `heat_bytes` as PGHOT_HEAT_MEM.
// Without large blocks, the policy knows of no object.
Scenario large_program(const PolicyParameters& policy, uint64_t pages, uint64_t hot_pages, uint64_t heat_bytes,
                       bool large_blocks, uint64_t seed);
// Graph500, scale 28 on 128 ranks: 100 GB, 24.48 M samples in 180 s. Heat falls with rank^-1.05: with this exponent
// moving each page with its first sample moves 3.46 M pages; 3.42 M were published.
inline constexpr uint64_t kGraphPages = 24414062;
inline constexpr double kGraphExponent = 1.05;
Scenario graph_search(const PolicyParameters& policy, uint64_t run, uint64_t seed);
// NAS BT as published: 16 ranks, 160 GB. Each goes over its memory once in `period` seconds.
Scenario sweeps(const PolicyParameters& policy, double period, uint64_t seed);
// 64 threads go over 4 GiB each, at most once, together at so many MB/s.
Scenario streaming(const PolicyParameters& policy, double mb_per_second, uint64_t seed);
// 19 of 20 accesses go to 512 MiB of 8 GiB, to others every `seconds`.
Scenario moving_hot_set(const PolicyParameters& policy, unsigned seconds, uint64_t seed);
// 32 threads on each node: 3 GiB of their own, and 2 GiB that all share have 3 of 10 accesses.
Scenario two_groups(const PolicyParameters& policy, uint64_t seed);

}    // namespace pghot::sim
