// SPDX-License-Identifier: Apache-2.0
#include "runtime/policy/chunk_header.h"

#include <algorithm>

namespace pghot {

unsigned ChunkHeader::hot_regions() const {
    unsigned regions = 0;
    for (unsigned i = 0; i < kRegions; ++i) regions += (region_hot[0][i] | region_hot[1][i]) != 0;
    return regions;
}

Majority ChunkHeader::majority() const {
    unsigned sum = 0;
    Majority most;
    unsigned weight = 0;
    for (uint8_t caller = 0; caller < kUnknownCaller; ++caller) {
        sum += node_weight[caller];
        if (node_weight[caller] <= weight) continue;
        weight = node_weight[caller];
        most.caller = caller;
    }
    most.clear = 4 * weight >= 3 * sum;
    return most;
}

Tick ChunkHeader::evidence_start(const HeatRules& rules) const {
    const Tick begin = half_start - rules.half;
    return later_by(active_since, begin) > 0 ? active_since : begin;
}

void ChunkHeader::rotate(Tick now, const HeatRules& rules) {
    const int32_t age = later_by(now, half_start);
    const auto half = static_cast<int32_t>(rules.half);
    if (age < half) return;
    const bool keep = age < 2 * half;
    samples = {0, keep ? samples[0] : uint16_t{0}};
    pages = {0, keep ? pages[0] : uint16_t{0}};
    hot = {0, keep ? hot[0] : uint16_t{0}};
    region_hot[1] = keep ? region_hot[0] : std::array<uint8_t, kRegions>{};
    region_hot[0] = {};
    half_start = keep ? half_start + rules.half : now;
    if (!keep) node_weight = {};
}

namespace {

// Index of the half window that a tick falls into; 2: none. A tick cannot be after the running half: rotate() came
// first.
unsigned half_of(Tick tick, Tick half_start, Tick half) {
    if (later_by(tick, half_start) >= 0) return 0;
    return later_by(tick, half_start - half) >= 0 ? 1 : 2;
}

}    // namespace

void ChunkHeader::enter(const PageRecord& page, unsigned index, const HeatRules& rules) {
    ++pages[0];
    if (!rules.is_hot(page.freq)) return;
    ++hot[0];
    ++region_hot[0][index / kPagesPerRegion];
}

void ChunkHeader::leave(const PageRecord& page, unsigned index, const HeatRules& rules) {
    if (page.freq == 0) return;
    const unsigned half = half_of(last_sample(page), half_start, rules.half);
    if (half > 1) return;
    --pages[half];
    if (!rules.is_hot(page.freq)) return;
    --hot[half];
    --region_hot[half][index / kPagesPerRegion];
}

void ChunkHeader::count_sample(uint8_t caller, Tick now) {
    if (window_samples() == 0) active_since = now;
    if (samples[0] != UINT16_MAX) ++samples[0];
    if (caller == kUnknownCaller) return;
    if (node_weight[caller] > UINT8_MAX - kWeight)
        for (auto& weight : node_weight) weight /= 2;
    node_weight[caller] = static_cast<uint8_t>(node_weight[caller] + kWeight);
}

void ChunkHeader::count_state(PageState state, int change) {
    const auto amount = static_cast<uint16_t>(change);    // -1 wraps to a subtraction
    if (state == PageState::kHeld) held = static_cast<uint16_t>(held + amount);
    if (state == PageState::kPlanned) planned = static_cast<uint16_t>(planned + amount);
    if (state == PageState::kCooling) cooling = static_cast<uint16_t>(cooling + amount);
}

void ChunkHeader::set_state(PageRecord& page, PageState state) {
    count_state(page.page_state(), -1);
    page.state = static_cast<uint32_t>(state) & 0xf;
    count_state(state, +1);
}

void ChunkHeader::set_top(PageRecord& page, bool is_top) {
    page.level_seen = 1;
    if (page.top == static_cast<uint32_t>(is_top)) return;
    page.top = is_top;
    top = static_cast<uint16_t>(is_top ? top + 1 : top - 1);
}

}    // namespace pghot
