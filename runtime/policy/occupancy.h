// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "runtime/base/units.h"

namespace pghot {

// How many different pages of a chunk uniform random access touches in s samples, on average:
// U(0) = 0, U(s+1) = U(s) + 1 - U(s)/512. In 64ths of a page, made at compile time; 4 KiB. At 2047 samples U is 503,
// from there on 512 stands for it.
inline constexpr uint32_t kOccupancyUnit = 64;
inline constexpr uint32_t kOccupancySamples = 2048;

namespace detail {
constexpr std::array<uint16_t, kOccupancySamples> occupancy_table() {
    std::array<uint16_t, kOccupancySamples> table{};
    constexpr uint64_t kFraction =
        1ull << 32;    // the recurrence itself in 32 fractional bits: rounding stays below 1e-6
    uint64_t pages = 0;
    for (auto& entry : table) {
        entry = static_cast<uint16_t>(pages * kOccupancyUnit / kFraction);
        pages += kFraction - pages / kPagesPerChunk;
    }
    return table;
}
inline constexpr auto kOccupancy = occupancy_table();
}    // namespace detail

// U(samples) in 64ths of a page.
constexpr uint32_t uniform_occupancy(uint32_t samples) {
    return samples < kOccupancySamples ? detail::kOccupancy[samples] : kPagesPerChunk * kOccupancyUnit;
}

// Accesses are skewed when they touched less than half of the pages that uniform access would have touched.
constexpr bool is_skewed(uint32_t samples, uint32_t distinct_pages) {
    return 2 * distinct_pages * kOccupancyUnit < uniform_occupancy(samples);
}

}    // namespace pghot
