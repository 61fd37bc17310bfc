// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/policy/ticks.h"

namespace pghot {

// What a page is waiting for.
//
//   cold --hot by the page rule--> held --planned--> planned --promoted, at target--> cold, in the top tier
//     ^                              |                  |----busy, no memory--------> cooling --time--> cold or planned
//     |------heat faded--------------+                  |----refused----------------> refused (stays)
//     |-------------------------------absent------------+----not tried--------------> held or cold
enum class PageState : uint8_t { kCold, kHeld, kPlanned, kCooling, kRefused };

inline constexpr unsigned kCallers = 16;            // values of PageRecord::node
inline constexpr uint8_t kUnknownCaller = 15;       // a sample without a usable CPU
inline constexpr unsigned kFrequencyMax = 15;       // of 4 bits
inline constexpr unsigned kMarginMax = 7;           // of 3 bits
inline constexpr unsigned kFreqThresholdMax = 7;    // as the kernel's precise mode

// Heat and state of one 4 KiB page. All zero bits: never sampled.
struct PageRecord {
    uint32_t node : 4;          // caller's node as an index of TargetMap
    uint32_t margin : 3;        // how many more samples of `node` than of others, majority vote
    uint32_t freq : 4;          // samples without a gap longer than freq_window; 0: `time` says nothing
    uint32_t time : 14;         // low bits of the tick of the last sample
    uint32_t state : 4;         // PageState
    uint32_t top : 1;           // known to be in the top tier, by a sample or by an outcome
    uint32_t written : 1;       // a store was sampled
    uint32_t level_seen : 1;    // a sample or an outcome told where the page is; else `top` says nothing

    PageState page_state() const { return static_cast<PageState>(state); }

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
