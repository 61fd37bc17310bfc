// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/base/units.h"
#include "runtime/policy/chunk_header.h"

namespace pghot {

// Where hot pages go.
enum class TargetMode : uint8_t {
    kCaller,       // the node of the CPUs that use the page
    kFixed,        // one node for all, the kernel's default mode
    kAlternate,    // the top-tier nodes in turn
};

// What the user may set. Values out of range are brought into it.
struct PolicyParameters {
    uint32_t freq_window_ms = 3000;    // PGHOT_FREQ_WINDOW, 1000 to 16383; a longer gap restarts a page's frequency
    uint8_t freq_threshold = 2;        // PGHOT_FREQ_THRESHOLD, 1 to 7 samples
    TargetMode target = TargetMode::kCaller;
    NodeId fixed_target{};     // for kFixed
    bool misplaced = false;    // PGHOT_MISPLACED: pages on the wrong DRAM node are put right too
    // Single pages are planned when this many wait (PGHOT_MIGRATE_BATCH, at most 512) or the first of them has waited
    // collect_ms.
    uint32_t batch_pages = 512;
    uint32_t collect_ms = 200;    // two of PGHOT_MIGRATE_SLEEP's default: a moving call's fixed cost wants company
    // How long a hot page is held for the chunk rule. 0: a quarter of freq_window.
    uint32_t settle_ms = 0;
    // When a page that was busy, or a node that was full, is tried again. Longer than the default window, so that a
    // second try of a page rests on new evidence; a page pinned for ever costs one failed move in five seconds.
    uint32_t cool_down_ms = 5000;
    bool demote = true;               // PGHOT_DEMOTE: cold pages make room for hot ones
    uint64_t dram_limit_bytes = 0;    // PGHOT_DRAM_LIMIT; 0: none

    HeatRules heat_rules() const {
        const Tick window = ticks_of_ms(std::clamp(freq_window_ms, 1000u, 16383u));
        const auto threshold = std::clamp<unsigned>(freq_threshold, 1, kFreqThresholdMax);
        return {.window = window, .half = window / 2, .threshold = static_cast<uint8_t>(threshold)};
    }
    Tick settle_ticks() const { return settle_ms != 0 ? ticks_of_ms(settle_ms) : heat_rules().window / 4; }
};

}    // namespace pghot
