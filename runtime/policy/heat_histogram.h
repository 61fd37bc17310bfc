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
// Pages that we demoted are classes of their own: they are what was taken for the coldest.
inline constexpr unsigned kHeatClasses = 2 * kHeatLevels * kDensities;

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
inline HeatClass class_of(bool demoted, unsigned level, unsigned density) {
    return static_cast<HeatClass>((demoted * kHeatLevels + level) * kDensities + density);
}
inline HeatClass class_of(const PageRecord& page, Tick age, unsigned density) {
    return class_of(page.page_state() == PageState::kDemoted, heat_level(page, age), density);
}
inline bool is_demoted(HeatClass which) { return which >= kHeatLevels * kDensities; }
// Whether the chunk is all that speaks for these pages, and says little.
inline bool is_vague(HeatClass which) { return which % (kHeatLevels * kDensities) <= kPassingDensity; }
static_assert((kFrequencyMax + 2 * kHistoryMax) << 4 < 1u << (kHeatLevels - 1));

// A set of heat classes.
class HeatClasses {
public:
    bool contains(HeatClass which) const { return (bits_[which / 64] >> which % 64 & 1) != 0; }
    void insert(HeatClass which) { bits_[which / 64] |= uint64_t{1} << which % 64; }

private:
    std::array<uint64_t, 2> bits_{};
    static_assert(kHeatClasses <= 128);
};

// How often pages of each heat class are sampled next. No model of how heat is distributed is needed: a sample is
// counted for the class that its page was in before, pages are counted class by class in turns over the table, and the
// quotient is the rate that a page of that class can be expected to have. Under uniform access all classes come out
// alike, and nobody gains by an exchange, however often some pages happened to be sampled; under skew they come apart
// by as much as there is to gain.
//
// Pure and without allocation; 4 KiB. Owned by the policy.
class HeatHistogram {
public:
    // A sample of a page that was of this class and is_telling().
    void sampled(HeatClass which) { ++samples_[which]; }
    // Pages of this class, met on the way over the table.
    void count(HeatClass which, Place place, uint32_t pages, bool telling) {
        counting_[static_cast<unsigned>(place)][which] += pages;
        telling_now_[which] += telling ? pages : 0;
    }
    // Whether the next sample of a page says anything about samples to come. One that follows within half a second,
    // before which nothing could have been moved, may be of the same visit: the front of a sweep touches each page many
    // times. Pages sampled less than half a second ago do not count either way.
    static bool is_telling(const PageRecord& page, Tick age) { return page.freq == 0 || age >= ticks_of_ms(500); }
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
    std::array<PerClass, 2> counting_{};    // by place
    std::array<PerClass, 2> pages_{};
    PerClass telling_now_{};
    PerClass telling_before_{};
    PerClass seen_{};    // samples of the last seconds; older ones count half
    // Page seconds in which they were taken. Between two turns a class had at least the fewer and at most the more
    // pages that either counted: a class that grows fast, as at the start, has no sharp rate.
    std::array<double, kHeatClasses> exposed_least_{};
    std::array<double, kHeatClasses> exposed_most_{};
    Tick turned_ = 0;
    Tick halved_ = 0;
    bool started_ = false;
};

}    // namespace pghot
