// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "runtime/base/units.h"
#include "runtime/policy/page_record.h"
#include "runtime/policy/ticks.h"

namespace pghot {

inline constexpr unsigned kRegions = 8;    // of a chunk, for the question whether heat is spread over it
inline constexpr unsigned kPagesPerRegion = kPagesPerChunk / kRegions;

// When a page is hot, in ticks. The window of a chunk is its running and its last half window, so that evidence does
// not vanish at a boundary: it reaches back at least half and at most one freq_window.
struct HeatRules {
    Tick window = 0;
    Tick half = 0;    // window / 2: two halves are never longer than the window
    uint8_t threshold = 1;

    bool is_hot(unsigned freq) const { return freq >= threshold; }
};

// Whether the samples of a chunk come from one node. Clear needs eight more than three times the samples of all others:
// 8 of 8, 11 of 12, 14 of 16. When both nodes use a chunk alike, that happens by chance to one chunk in 70; with one
// sample in ten from elsewhere it takes 13 samples.
enum class Agreement : uint8_t {
    kClear,
    kOpen,    // at least three quarters, but too few samples to be sure
    kNone,
};
struct Majority {
    uint8_t caller = kUnknownCaller;
    Agreement agreement = Agreement::kClear;
};
inline constexpr unsigned kMajorityLead = 8;

// What is known of a 2 MiB chunk beside its page records. 104 bytes, so that everything together stays below 4.25 bytes
// a page. [0] is the running half window, [1] the last one; `pages` counts a page in the half of its last sample, so
// the sum is exact.
struct ChunkHeader {
    uint64_t chunk;       // address / kChunkBytes; kNoChunk while the block is free
    Tick last;            // newest sample or outcome: what the 14 bit times of the records are relative to
    Tick active_since;    // first sample after a window without any
    Tick half_start;
    Tick first_held;    // when the oldest of the held pages became hot
    Tick moved;         // last outcome that put pages into the top tier: older samples say nothing about them
    Tick retry;         // cooling pages may be tried again from here on
    std::array<uint16_t, 2> samples;
    std::array<uint16_t, 2> pages;    // different pages sampled, in whatever tier
    std::array<std::array<uint8_t, kRegions>, 2> region_pages;
    // Samples by caller's node, halved with every half window: counts and not a running vote, since rings are drained
    // one after the other and a vote would go to the last.
    std::array<uint16_t, kUnknownCaller> node_samples;
    uint16_t held;    // pages in the state of that name; likewise the next two
    uint16_t planned;
    uint16_t cooling;
    uint16_t newest;              // low bits of the newest sample's tick
    uint16_t object;              // ObjectHeat's number of the object that the chunk is part of; 0: none
    uint16_t top;                 // pages known to be in the top tier
    uint16_t unpaid;              // ledger: pages promoted that have not paid for it yet
    uint8_t retries : 2;          // of cooling pages since the chunk was moved whole, or a cooling page was sampled hot
    uint8_t retrying : 1;         // the outcomes of one are still to come
    uint8_t setbacks : 3;         // tries in a row at busy pages that failed: each doubles the cool-down
    uint8_t judged : 1;           // the ledger has judged the move of the whole chunk
    uint8_t listed : 1;           // the block is on the ready list (a property of the block: survives reuse)
    uint8_t huge : 1;             // sampled as a huge page last
    uint8_t whole : 1;            // moved whole, or being so
    uint8_t whole_pending : 1;    // decided to be moved whole, some runs are not planned yet
    uint8_t doubtful : 1;         // a promoted page was seen in the lower tier: `top` of the others may be stale
    uint8_t lower_seen : 1;       // a sample came from the lower tier since the chunk was moved
    uint8_t dram_seen : 1;        // likewise from the top tier

    static constexpr uint64_t kNoChunk = ~0ull;

    uint32_t window_samples() const { return uint32_t{samples[0]} + samples[1]; }
    uint32_t window_pages() const { return uint32_t{pages[0]} + pages[1]; }
    // Regions with a page sampled in the window.
    unsigned regions() const;
    // Pages that count towards the chunk rule: different ones, and no more than there are thresholds of samples. At
    // threshold 2 eight pages count when they were sampled 16 times in all, whichever of them twice: of the same number
    // of samples a large chunk has few pages twice.
    uint32_t evidence(const HeatRules& rules) const {
        return std::min(window_pages(), window_samples() / rules.threshold);
    }
    Majority majority() const;
    // Start of the evidence in the window.
    Tick evidence_start(const HeatRules& rules) const;

    // Moves the window up to `now`; a `now` before its start changes nothing.
    void rotate(Tick now, const HeatRules& rules);
    // The full tick of a record's last sample; only for freq > 0.
    Tick last_sample(const PageRecord& page) const { return last - ((last - page.time) & kTickMask); }
    // Takes a page's last sample into or out of the window. Around every change of freq or time.
    void enter(unsigned index);
    void leave(const PageRecord& page, unsigned index, const HeatRules& rules);
    void count_sample(uint8_t caller, Tick now);
    // The only ways to change a record's state and tier: the counts above follow.
    void set_state(PageRecord& page, PageState state);
    void set_top(PageRecord& page, bool top);

private:
    void count_state(PageState state, int change);
};
static_assert(sizeof(ChunkHeader) == 104);

// ---- inline, since every sample passes here

inline void ChunkHeader::rotate(Tick now, const HeatRules& rules) {
    const int32_t age = later_by(now, half_start);
    const auto half = static_cast<int32_t>(rules.half);
    if (age < half) return;
    const bool keep = age < 2 * half;
    samples = {0, keep ? samples[0] : uint16_t{0}};
    pages = {0, keep ? pages[0] : uint16_t{0}};
    region_pages[1] = keep ? region_pages[0] : std::array<uint8_t, kRegions>{};
    region_pages[0] = {};
    half_start = keep ? half_start + rules.half : now;
    for (auto& count : node_samples) count = static_cast<uint16_t>(keep ? (count + 1) / 2 : 0);
}

inline void ChunkHeader::enter(unsigned index) {
    ++pages[0];
    ++region_pages[0][index / kPagesPerRegion];
}

// Arithmetic instead of branches: whether a page was sampled lately is what the processor cannot guess, and a wrong
// guess costs as much as all the rest of a sample.
inline void ChunkHeader::leave(const PageRecord& page, unsigned index, const HeatRules& rules) {
    const Tick tick = last_sample(page);    // never after the running half: rotate() came first
    const unsigned half = later_by(tick, half_start) < 0;
    const unsigned is_in = static_cast<unsigned>(page.freq != 0) & (later_by(tick, half_start - rules.half) >= 0);
    pages[half] = static_cast<uint16_t>(pages[half] - is_in);
    auto& region = region_pages[half][index / kPagesPerRegion];
    region = static_cast<uint8_t>(region - is_in);
}

inline void ChunkHeader::count_sample(uint8_t caller, Tick now) {
    if (window_samples() == 0) active_since = now;
    newest = static_cast<uint16_t>(now);
    if (samples[0] != UINT16_MAX) ++samples[0];
    if (caller == kUnknownCaller) return;
    if (node_samples[caller] == UINT16_MAX)
        for (auto& count : node_samples) count /= 2;
    ++node_samples[caller];
}

inline void ChunkHeader::count_state(PageState state, int change) {
    const auto amount = static_cast<uint16_t>(change);    // -1 wraps to a subtraction
    if (state == PageState::kHeld) held = static_cast<uint16_t>(held + amount);
    if (state == PageState::kPlanned) planned = static_cast<uint16_t>(planned + amount);
    if (state == PageState::kCooling) cooling = static_cast<uint16_t>(cooling + amount);
}

inline void ChunkHeader::set_state(PageRecord& page, PageState state) {
    count_state(page.page_state(), -1);
    page.state = static_cast<uint32_t>(state) & 7;
    count_state(state, +1);
}

inline void ChunkHeader::set_top(PageRecord& page, bool is_top) {
    page.level_seen = 1;
    if (page.top == static_cast<uint32_t>(is_top)) return;
    page.top = is_top;
    top = static_cast<uint16_t>(is_top ? top + 1 : top - 1);
}

}    // namespace pghot
