// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/base/units.h"

namespace pghot {

// Which rule planned it.
enum class MoveRule : uint8_t { kPage, kChunk, kHuge };

// Which way pages go. All kinds share one budget.
enum class MoveKind : uint8_t {
    kPromote,    // from the lower tier to a top-tier node
    kDemote,     // from a top-tier node to the lower tier
    kRehome,     // from one top-tier node to another
};
inline constexpr unsigned kMoveKinds = 3;

// A range that should come to `target`. Consecutive base pages from `address`; for kHuge one 2 MiB page.
struct Move {
    uintptr_t address = 0;    // page aligned
    uint32_t pages = 0;       // base pages, 1 to 512, never across a chunk boundary
    // A top-tier node, or for kDemote a node of the lower tier; kNoNode there: the nearest with room. A full one is
    // replaced by another of its tier, but for kRehome.
    NodeId target{};
    MoveRule rule = MoveRule::kPage;
    uint32_t heap_generation = 0;    // HeapExtent::generation at planning; filled by the engine
    TimeNs planned{};
    MoveKind kind = MoveKind::kPromote;
    NodeId from{};    // for kDemote: only pages on this top-tier node; kNoNode: on any
};

// What became of each page of a move, reported back to the policy. Values are in recordings: new ones come last.
enum class PageOutcome : uint8_t {
    kPromoted,     // moved, now on a top-tier node
    kAtTarget,     // was in the tier, for kRehome on the node, that it was to go to already
    kAbsent,       // not present, no longer mapped, reused, or bound by the program meanwhile: its heat means nothing
    kBusy,         // pinned, being moved, or shared with another process: try again after a cool-down
    kNoMemory,     // no room on the target node
    kRefused,      // outside the cpuset, not movable: leave alone
    kNotTried,     // stale or expired plan
    kDemoted,      // moved, now in the lower tier
    kRehomed,      // moved, now on the top-tier node that it was to go to
    kElsewhere,    // not where the plan took it from, nor where it was to go: kDemote, another top-tier node than
                   // `from`; kRehome, the lower tier
};

inline constexpr uint32_t kMostOutcomePages = 2048;    // of several moves that were neighbours

struct MoveOutcome {
    uintptr_t address = 0;    // page aligned
    uint32_t pages = 0;       // consecutive pages with the same outcome, 1 to kMostOutcomePages
    PageOutcome outcome = PageOutcome::kNotTried;
    NodeId node{};    // where the pages are now, if known
    TimeNs time{};
    NodeId target{};    // where they were to go; with kNoMemory it tells the policy which node is full
    MoveKind kind = MoveKind::kPromote;

    // Whether the pages are in the top tier, by what became of them. Only of outcomes that tell where a page is:
    // kPromoted, kAtTarget, kDemoted, kRehomed and kElsewhere.
    bool in_top_tier() const {
        if (outcome == PageOutcome::kElsewhere) return kind == MoveKind::kDemote;
        return kind != MoveKind::kDemote;
    }
};

// The same fate for all pages of a move.
inline MoveOutcome outcome_of(const Move& move, PageOutcome outcome, TimeNs time) {
    return {move.address, move.pages, outcome, kNoNode, time, move.target, move.kind};
}

}    // namespace pghot
