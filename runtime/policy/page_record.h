// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/policy/ticks.h"

namespace pghot {

// What a page is waiting for.
//
//   cold --hot by the page rule--> held --planned--> planned --promoted, at target--> cold, in the top tier
//     ^                              |                  |----busy, no memory--------> cooling --time--> cold or planned
//     |------heat faded--------------+                  |----refused----------------> refused (stays)
//     |-------------------------------absent------------+----not tried--------------> held or cold
//                                                       |----demoted----------------> demoted
//
// demoted is cold, in the lower tier because we put it there: it takes more than others to go up. Cold after 131 s.
enum class PageState : uint8_t { kCold, kHeld, kPlanned, kCooling, kRefused, kDemoted };

inline constexpr unsigned kCallers = 16;            // values of PageRecord::node
inline constexpr uint8_t kUnknownCaller = 15;       // a sample without a usable CPU
inline constexpr unsigned kFrequencyMax = 15;       // of 4 bits
inline constexpr unsigned kMarginMax = 7;           // of 3 bits
inline constexpr unsigned kHistoryMax = 3;          // of 2 bits
inline constexpr unsigned kFreqThresholdMax = 7;    // as the kernel's precise mode

// Half-life of what is known of a page, for its place among others: 2^11 ticks, 33 s. Long against freq_window since a
// sample is rare: at the published rate each of 2.1 M pages is sampled once in 15 s on average.
inline constexpr unsigned kHalfLifeBits = 11;
// Samples in one run that count like a second run.
inline constexpr unsigned kLongRun = 4;
// Samples of one run that make a demoted page hot, where the threshold is lower. A single one is no news: it was
// demoted as one that is sampled now and then.
inline constexpr unsigned kReturnSamples = 2;

// Heat and state of one 4 KiB page. All zero bits: never sampled.
struct PageRecord {
    uint32_t node : 4;          // caller's node as an index of TargetMap
    uint32_t margin : 3;        // how many more samples of `node` than of others, majority vote
    uint32_t freq : 4;          // samples without a gap longer than freq_window; 0: `time` says nothing
    uint32_t time : 14;         // low bits of the tick of the last sample; of a demoted page with freq 0, of the move
    uint32_t state : 3;         // PageState
    uint32_t history : 2;       // runs of samples before this one, less one for each half-life of the gaps between
    uint32_t top : 1;           // known to be in the top tier, by a sample or by an outcome
    uint32_t level_seen : 1;    // a sample or an outcome told where the page is; else `top` says nothing

    PageState page_state() const { return static_cast<PageState>(state); }

    // What `history` is when the run ends with a gap of so many ticks. freq restarts at 1 then (the kernel's rule), and
    // alone would forget all that tells a page sampled every ten seconds from one sampled once.
    uint32_t history_after(uint32_t gap) const {
        const uint32_t runs = history + 1u + (freq >= kLongRun);
        const uint32_t worn = gap >> kHalfLifeBits;
        return runs > worn ? std::min(runs - worn, kHistoryMax) : 0;
    }

    // Majority vote (Boyer and Moore) with a bounded margin: a page that changes hands changes its node after at most
    // eight samples of the new one.
    void vote(uint8_t caller) {
        if (caller == kUnknownCaller) return;
        const unsigned lead = margin;
        const unsigned agreed = lead < kMarginMax ? lead + 1 : lead;
        const unsigned contested = lead == 0 ? 1 : lead - 1;
        margin = (node == caller ? agreed : contested) & 7;
        node = (lead == 0 ? caller : node) & 0xf;
    }
};
static_assert(sizeof(PageRecord) == 4);

}    // namespace pghot
