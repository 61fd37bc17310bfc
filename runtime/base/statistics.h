// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "runtime/base/counters.h"
#include "runtime/base/topology.h"

namespace pghot {

inline constexpr uint32_t kStatisticsVersion = 3;
inline constexpr char kStatisticsMagic[8] = {'p', 'g', 'h', 'o', 't', 's', 't', '1'};
inline constexpr unsigned kSecondRows = 512;    // the last eight and a half minutes

// One second of the run, differences since the row before.
struct SecondRow {
    uint64_t time_ns = 0;    // CLOCK_MONOTONIC at the end of the second
    uint64_t samples = 0;
    uint64_t useful = 0;
    uint64_t extmem = 0;
    uint64_t lost = 0;
    uint64_t promoted_pages = 0;
    uint64_t promoted_bytes = 0;
    uint64_t move_calls = 0;
    uint64_t sampler_cpu_ns = 0;
    uint64_t mover_cpu_ns = 0;
    uint64_t period = 0;    // between two samples at the end of the second, not a difference
};

// Which source of samples is in use. The order is the order of the ladder.
enum class SourceKind : uint8_t { kNone, kIbs, kHintFaults, kReplay };

// The statistics page: a memfd in the sampler's descriptor table, read by `pghot stat` and by the report writer.
// Written by the sampler except where the counter table says mover. All fields are fixed size; the version changes with
// any change of layout. Texts end in a zero byte and are written once, before `state` says running.
struct Statistics {
    char magic[8] = {};
    uint32_t version = kStatisticsVersion;
    uint32_t bytes = 0;    // sizeof(Statistics)
    int32_t pid = 0;
    std::atomic<uint32_t> state{0};    // EngineState
    uint64_t started_ns = 0;           // CLOCK_MONOTONIC
    std::atomic<uint64_t> updated_ns{0};
    SourceKind source = SourceKind::kNone;
    bool damon_runs = false;         // a rival: DAMON, whose schemes may move pages, was on at the start
    int32_t numa_balancing = -1;     // another: kernel.numa_balancing at the start, a bit mask; -1 unknown
    char source_reason[192] = {};    // why this one, or why none
    char command[256] = {};
    char job[64] = {};                      // empty: alone
    char job_reason[128] = {};              // why alone
    std::atomic<uint64_t> period{0};        // operations between two samples now
    std::atomic<uint32_t> ranks{0};         // of the job on this node that show life, this one among them; 0: alone
    std::atomic<uint32_t> ranks_seen{0};    // that ever joined
    Counters counters{};
    std::atomic<uint64_t> rows{0};    // rows written in all; row i is in second[i % kSecondRows]
    std::array<SecondRow, kSecondRows> second{};
};

// What the engine came to.
enum class EngineState : uint32_t {
    kNotStarted,     // the process stayed below PGHOT_START_MIN, or mode off
    kNoLowerTier,    // this machine has one tier
    kNoSource,       // a lower tier, but no way to sample
    kObserving,      // samples, no moves
    kRunning,
    kStopped,
    kFailed,    // an error of ours; source_reason says which
};

}    // namespace pghot
