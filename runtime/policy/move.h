// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/base/units.h"

namespace pghot {

// Which rule planned it.
enum class MoveRule : uint8_t { kPage, kChunk, kHuge };

// A range that should come to `target`. Consecutive base pages from `address`; for kHuge one 2 MiB page.
struct Move {
    uintptr_t address = 0;    // page aligned
    uint32_t pages = 0;       // base pages, 1 to 512, never across a chunk boundary
    NodeId target{};
    MoveRule rule = MoveRule::kPage;
    uint32_t heap_generation = 0;    // HeapExtent::generation at planning; filled by the engine
    TimeNs planned{};
};

// What became of each page of a move, reported back to the policy.
enum class PageOutcome : uint8_t {
    kPromoted,    // moved, now on a top-tier node
    kAtTarget,    // was on the target or another top-tier node already
    kAbsent,      // not present, no longer mapped, reused, or bound by the program meanwhile: its heat means nothing
    kBusy,        // pinned, being moved, or shared with another process: try again after a cool-down
    kNoMemory,    // no room on the target node
    kRefused,     // outside the cpuset, not movable: leave alone
    kNotTried,    // stale or expired plan
};

struct MoveOutcome {
    uintptr_t address = 0;    // page aligned
    uint32_t pages = 0;       // consecutive pages with the same outcome
    PageOutcome outcome = PageOutcome::kNotTried;
    NodeId node{};    // where the pages are now, if known
    TimeNs time{};
    NodeId target{};    // where they were to go; with kNoMemory it tells the policy which node is full
};

}    // namespace pghot
