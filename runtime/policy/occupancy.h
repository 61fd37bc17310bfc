// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "runtime/base/units.h"

namespace pghot {

// How many different ones of n things uniform random access touches in s samples, on average:
// U(0) = 0, U(s+1) = U(s) + 1 - U(s)/n.
inline constexpr uint32_t kOccupancyUnit = 64;
inline constexpr uint32_t kOccupancySamples = 2048;

namespace detail {
// For n pages, in 64ths of a page, made at compile time; 4 KiB. From 2048 samples on n stands for it: at 2047 samples U
// of 512 pages is 503.
constexpr std::array<uint16_t, kOccupancySamples> occupancy_table(uint64_t n) {
    std::array<uint16_t, kOccupancySamples> table{};
    constexpr uint64_t kFraction =
        1ull << 32;    // the recurrence itself in 32 fractional bits: rounding stays below 1e-6
    uint64_t touched = 0;
    for (auto& entry : table) {
        entry = static_cast<uint16_t>(touched * kOccupancyUnit / kFraction);
        touched += kFraction - touched / n;
    }
    return table;
}
inline constexpr uint32_t kFewPages = kPagesPerChunk / 4;
inline constexpr auto kOccupancy = occupancy_table(kPagesPerChunk);
inline constexpr auto kOccupancyOfFew = occupancy_table(kFewPages);
}    // namespace detail

// U(samples) of a chunk's pages, in 64ths of a page.
constexpr uint32_t uniform_occupancy(uint32_t samples) {
    return samples < kOccupancySamples ? detail::kOccupancy[samples] : kPagesPerChunk * kOccupancyUnit;
}
// The same if a quarter of the pages had all accesses.
constexpr uint32_t quarter_occupancy(uint32_t samples) {
    return samples < kOccupancySamples ? detail::kOccupancyOfFew[samples] : detail::kFewPages * kOccupancyUnit;
}

// Accesses of a chunk are skewed when they touched less than half of the pages that uniform access would have touched,
// or fewer (by more than two) than uniform access to a quarter of the pages. The second tells few hot pages early: 16
// samples touch 15.8 of 512 pages, 15.1 of 128, 10.5 of 16. True uniform access fails it once in 10^4 chunks.
constexpr bool is_skewed(uint32_t samples, uint32_t distinct_pages) {
    constexpr uint32_t kSlack = 2;
    return 2 * distinct_pages * kOccupancyUnit < uniform_occupancy(samples) ||
           (distinct_pages + kSlack) * kOccupancyUnit < quarter_occupancy(samples);
}

}    // namespace pghot
