// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/base/units.h"

namespace pghot {

// Time as the heat table keeps it: units of 16 ms, so that 14 bits of a page record reach 262 s. A tick count wraps
// after two years; only differences are used, through later_by.
using Tick = uint32_t;
inline constexpr uint64_t kTickNs = 16 * kNsPerMs;
inline constexpr unsigned kTickBits = 14;                   // of a page record's time
inline constexpr Tick kTickMask = (1u << kTickBits) - 1;    // 262 s
inline constexpr unsigned kEpochBits = kTickBits - 1;       // half of what a record can tell apart: 131 s

constexpr Tick tick_of(TimeNs time) { return static_cast<Tick>(time.ns / kTickNs); }
// Rounded up: a gap of more than this many ticks is longer than `ms` for certain.
constexpr Tick ticks_of_ms(uint32_t ms) { return static_cast<Tick>((uint64_t{ms} * kNsPerMs + kTickNs - 1) / kTickNs); }
constexpr int32_t later_by(Tick a, Tick b) { return static_cast<int32_t>(a - b); }

}    // namespace pghot
