// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "runtime/policy/chunk_header.h"
#include "runtime/policy/page_record.h"
#include "runtime/policy/ticks.h"

namespace pghot {

// Where a page is, as far as known. Pages that never told take after their chunk.
enum class Place : uint8_t { kTop, kLower, kUnknown };
inline Place place_of(const ChunkHeader& header, const PageRecord& page) {
    if (page.top) return Place::kTop;
    if (page.level_seen || header.lower_seen) return Place::kLower;
    if (header.dram_seen) return Place::kTop;
    return page.freq != 0 ? Place::kLower : Place::kUnknown;
}

// Pages whose samples so far look alike: by heat of the page, and by how many pages of its chunk were sampled in the
// window, which is all that is known of a page never sampled.
using HeatClass = uint8_t;
// 0: never sampled, or longer ago than 131 s. Else a power of two each: runs count two samples each, age halves.
inline constexpr unsigned kHeatLevels = 10;
// No page of the chunk, up to 3 or a front that only passes, 15, 63, more; the last for huge pages, whose one record
// stands for 512 pages.
inline constexpr unsigned kDensities = 6;
inline constexpr unsigned kPassingDensity = 1;
inline constexpr unsigned kHugeDensity = kDensities - 1;
inline constexpr unsigned kHeatClasses = kHeatLevels * kDensities;

inline unsigned heat_level(const PageRecord& page, Tick age) {
    if (page.freq == 0) return 0;
    const uint32_t weight = (page.freq + 2u * page.history) << 4;    // 4 bits of room for age
    const uint32_t aged = weight >> std::min(age >> kHalfLifeBits, Tick{8});
    return static_cast<unsigned>(std::bit_width(aged | 1));
}
// A chunk that was not in use for half a window yet may be one that is read once, from its beginning to its end: its
// pages that were not sampled are behind the front before they are moved.
inline unsigned density_of(const ChunkHeader& header, const HeatRules& rules) {
    const auto width = static_cast<unsigned>(std::bit_width(header.window_pages()));
    const bool passing = header.last - header.active_since < rules.half;
    const unsigned density = std::min((width + 1) / 2, passing ? kPassingDensity : kHugeDensity - 1);
    return header.huge ? kHugeDensity : density;
}
inline HeatClass class_of(unsigned level, unsigned density) {
    return static_cast<HeatClass>(level * kDensities + density);
}
// Whether the chunk is all that speaks for these pages, and says little.
inline bool is_vague(HeatClass which) { return which <= class_of(0, kPassingDensity); }
static_assert((kFrequencyMax + 2 * kHistoryMax) << 4 < 1u << (kHeatLevels - 1));

// A set of heat classes.
class HeatClasses {
public:
    bool contains(HeatClass which) const { return (bits_ >> which & 1) != 0; }
    void insert(HeatClass which) { bits_ |= uint64_t{1} << which; }
    bool empty() const { return bits_ == 0; }

private:
    uint64_t bits_ = 0;
    static_assert(kHeatClasses <= 64);
};

// How often pages of each heat class are sampled next. No model of how heat is distributed is needed: a sample is
// counted for the class that its page was in before, pages are counted class by class in turns over the table, and the
// quotient is the rate that a page of that class can be expected to have. Under uniform access all classes come out
// alike, and nobody gains by an exchange, however often some pages happened to be sampled; under skew they come apart
// by as much as there is to gain.
//
// Pure and without allocation; 2 KiB. Owned by the policy.
class HeatHistogram {
public:
    // A sample of a page that was of this class.
    void sampled(HeatClass which) { ++samples_[which]; }
    // Pages of this class, met on the way over the table.
    void count(HeatClass which, Place place, uint32_t pages) {
        counting_[static_cast<unsigned>(place)][which] += pages;
    }
    // All of the table was gone over since the last call.
    void end_turn(Tick now);

    // Of the last turn.
    uint32_t pages(HeatClass which, Place place) const { return pages_[static_cast<unsigned>(place)][which]; }
    // Samples a second that a page of the class gets, at least and at most: two standard deviations of the count below
    // and above, so that classes of which little was seen are neither promoted nor demoted on a chance.
    double least_rate(HeatClass which) const;
    double most_rate(HeatClass which) const;

private:
    using PerClass = std::array<uint32_t, kHeatClasses>;

    PerClass samples_{};
    std::array<PerClass, 2> counting_{};
    std::array<PerClass, 2> pages_{};
    PerClass seen_{};                               // samples of the last seconds; older ones count half
    std::array<double, kHeatClasses> exposed_{};    // page seconds in which they were taken
    Tick turned_ = 0;
    Tick halved_ = 0;
    bool started_ = false;
};

}    // namespace pghot
