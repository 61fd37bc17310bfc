// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "runtime/base/spsc_queue.h"
#include "runtime/base/statistics.h"
#include "runtime/base/topology.h"
#include "runtime/config/tunables.h"
#include "runtime/kernel/syscalls.h"
#include "runtime/kernel/thread.h"
#include "runtime/policy/job_shares.h"
#include "runtime/policy/move.h"

namespace pghot {

// A word that one side sets and the other sleeps on.
class Signal {
public:
    void raise() {
        word_.fetch_add(1, std::memory_order_release);    // pairs with value()
        sys::futex_wake(reinterpret_cast<const uint32_t*>(&word_));
    }
    uint32_t value() const { return word_.load(std::memory_order_acquire); }
    bool raised() const { return value() != 0; }
    // Sleeps while the value is still `seen`, at most `timeout_ns`.
    void wait(uint32_t seen, uint64_t timeout_ns) const {
        if (value() == seen) sys::futex_wait(reinterpret_cast<const uint32_t*>(&word_), seen, timeout_ns);
    }

private:
    std::atomic<uint32_t> word_{0};
    static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
};

// What the engine is started with.
struct EngineSettings {
    Tunables tunables;
    ThreadCpus cpus;         // of the process when it was loaded, not of the thread that happens to start us
    PathText report_file;    // expanded; empty: no report file
    PathText record_file;    // expanded; empty: no recording
    JobText job;             // empty: alone
};

// What the engine's two threads and the program thread that started them have in common. Lives in memory of its own
// that a forked child does not inherit. Every field has one writer, named beside it.
struct EngineShared {
    // Before the threads exist, by the starter; then constant.
    EngineSettings settings;

    // By the sampler before `ready`; then constant.
    Topology topology;
    sys::MemoryPolicy thread_policy;    // of the program's thread that started us, inherited by the mover
    std::array<uint64_t, kMaxNodes> low_watermark_bytes{};    // the kernel's, by node; 0 unknown
    Statistics* statistics = &own_statistics;
    JobBoard* job = nullptr;    // null: alone
    size_t job_slot = 0;
    FixedText<256> problem;    // a file that could not be read or written, as one line; until sampler_ended

    // Written by each thread about itself before the other one is started or told.
    std::array<int, 2> own_tids{};

    Signal stop;             // by whoever ends the engine
    Signal ready;            // by the sampler: set-up is over, one way or the other
    Signal sampler_ended;    // by the sampler, its last act
    Signal mover_ended;      // by the mover, its last act but returning
    Signal plans_waiting;    // by the sampler: there is something in `plans`

    // Plans go one way, outcomes the other. A plan queue of one megabyte's worth of chunk moves is far more than a
    // budget lets pass in a drain; outcomes are merged runs.
    SpscQueue<Move, 1024> plans;
    SpscQueue<MoveOutcome, 8192> outcomes;

    // By the sampler about every 100 ms: what each node has free. The mover accounts for what it moved since.
    std::array<std::atomic<uint64_t>, kMaxNodes> free_bytes{};
    std::atomic<uint32_t> free_round{0};

    Statistics own_statistics;    // until the sampler has a memfd, and where it cannot have one

    bool stopping() const { return stop.raised(); }
};

}    // namespace pghot
