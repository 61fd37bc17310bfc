// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/base/topology.h"
#include "runtime/config/tunables.h"
#include "runtime/kernel/filesystem.h"
#include "runtime/sources/ibs_source.h"

namespace pghot {

// What the machine said, as plain data: the text and the verdict are functions of it, tested on invented machines.
struct DoctorFacts {
    static constexpr int kUnknown = -100;

    std::string kernel;    // release
    Topology topology;
    std::array<uint64_t, kMaxNodes> free_bytes{};
    IbsPmu ibs;
    int ibs_error = 0;            // errno of finding or opening ibs_op for this thread; 0: it works
    bool ibs_found = false;       // the PMU exists
    bool ring_refused = false;    // the event opens, but its ring cannot be mapped
    int perf_event_paranoid = kUnknown;
    bool bound_elsewhere = false;     // a memory policy of this process (numactl) keeps its memory where it is
    int move_pages_error = 0;         // errno of asking move_pages about one own page
    int numa_balancing = kUnknown;    // kernel.numa_balancing, a bit mask
    bool damon_runs = false;          // a DAMON monitor thread of the kernel is on
    bool numad_runs = false;
    std::string job;    // that a process started here would join; empty: none, it is alone
};

// Asks the machine. Opens and closes one perf event of this thread; changes nothing.
std::unique_ptr<DoctorFacts> examine(FileSystem& files, const Tunables& tunables);

// What libpghot would come to in a program started here with these settings.
enum class Verdict : uint8_t { kOff, kNoLowerTier, kNoMigration, kNoSource, kBoundElsewhere, kObserves, kTiers };
Verdict verdict_of(const DoctorFacts& facts, const Tunables& tunables);
bool would_work(Verdict verdict);

// Why ibs does not work and what can be done about it, or that it works.
std::string ibs_advice(const DoctorFacts& facts);

std::string doctor_text(const DoctorFacts& facts, const Tunables& tunables);
std::string doctor_json(const DoctorFacts& facts, const Tunables& tunables);

}    // namespace pghot
