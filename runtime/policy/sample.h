// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/base/units.h"

namespace pghot {

// What served an access, as far as the PMU tells. Stores that miss have no level: kNoLevel.
enum class ServedBy : uint8_t { kNoLevel, kCache, kDram, kExtMem };

// Which source saw it.
enum class SampleOrigin : uint8_t { kIbs, kHintFault };

// One access of the observed program, whatever the source. Plain data.
struct Sample {
    uintptr_t address = 0;    // byte address
    TimeNs time{};            // CLOCK_MONOTONIC
    uint32_t tid = 0;
    uint16_t cpu = 0;
    NodeId node{};    // node of that CPU
    ServedBy served_by = ServedBy::kNoLevel;
    SampleOrigin origin = SampleOrigin::kIbs;
    bool store = false;
    bool remote = false;            // served by DRAM of another node than `node`
    bool huge = false;              // the address is in a huge page: heat goes to its head, moved whole
    uint32_t latency_cycles = 0;    // DcMissLat; 0 unknown
};

}    // namespace pghot
