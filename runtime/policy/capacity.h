// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "runtime/base/topology.h"
#include "runtime/policy/move.h"
#include "runtime/policy/ticks.h"

namespace pghot {

// What no move takes of a node's free memory: the kernel's low watermark, below which every allocation of the program
// would wake kswapd, and one batch of 8 MiB; two batches where no watermark is known (0). On the lower tier, where
// nobody allocates who has another choice, a 256th of the node and one batch at least.
uint64_t floor_bytes(const Node& node, uint64_t low_watermark_bytes);
// What the rules leave free on a top-tier node for the program's own allocations: a 64th of it, no less than the floor.
uint64_t headroom_bytes(const Node& node, uint64_t low_watermark_bytes);

// Bytes that may still be put on a node. A full one has less free than the headroom: pages that change places need the
// floor only, since what goes up is what came free.
struct NodeRoom {
    NodeId node{};
    uint64_t above_headroom = 0;
    uint64_t above_floor = 0;
};

// How many pages may still be put on each top-tier node: the last reading of free memory less what was planned since,
// and PGHOT_DRAM_LIMIT. A node of which nothing was read has room: the kernel will tell.
//
// When hot memory finds no node, those that could not take it are tight: until they have room for much more, or nothing
// hot has come for a while. The rules for pages and chunks leave tight nodes alone; what room they have, and what
// demotion makes, is the exchange's (exchange.h).
//
// Pure; owned by the policy.
class Capacity {
public:
    // A fresh reading, of all nodes at once.
    void read(std::span<const NodeRoom> rooms, Tick now);
    // PGHOT_DRAM_LIMIT; 0 for none. Until found() has told how much is there already, there is no room.
    void set_limit(uint64_t bytes) { limit_ = static_cast<int64_t>(bytes / kPageBytes); }
    // Pages of the program that lie on top-tier nodes now.
    void found(uint64_t pages);

    // Whether free memory of the node was ever read.
    bool knows(NodeId node) const {
        return node.valid() && node.value < static_cast<int>(kMaxNodes) && (known_ >> node.value & 1) != 0;
    }
    // Bit per node that can take so many pages under the rules for pages and chunks, or for the exchange.
    uint64_t open_for(uint32_t pages) const;
    uint64_t open_for_exchange(uint32_t pages) const;
    // A move of so many pages by the rules found no node.
    void note_shortage(uint32_t pages, Tick now);
    bool tight() const { return tight_ != 0 || limit_tight_; }

    void planned(MoveKind kind, NodeId target, uint32_t pages);
    // All pages of a plan come back.
    void reported(const MoveOutcome& outcome, Tick retry);

    // For the exchange, in pages: what may be promoted now; demotions whose room no reading shows yet; what lies on
    // top-tier nodes beyond the limit.
    uint64_t room() const;
    uint64_t coming() const { return static_cast<uint64_t>(demoting_ + freed_); }
    uint64_t excess() const;
    bool lower_tier_is_full(Tick now) const { return lower_full_ && later_by(now, lower_full_until_) < 0; }

private:
    int64_t limit_room() const;
    int64_t exchange_room(unsigned node) const;
    bool is_tight(unsigned node) const { return limit_tight_ || (tight_ >> node & 1) != 0; }
    void settle(NodeId target, int64_t pages);

    std::array<int64_t, kMaxNodes> room_{};          // pages above the headroom; what is planned is subtracted
    std::array<int64_t, kMaxNodes> floor_room_{};    // likewise above the floor
    std::array<int64_t, kMaxNodes> in_flight_{};     // promotions planned and not reported
    uint64_t known_ = 0;                             // bit per node
    uint64_t tight_ = 0;
    int64_t promoting_ = 0;    // sum of in_flight_
    int64_t demoting_ = 0;     // demotions planned and not reported
    int64_t freed_ = 0;        // demoted since the last reading
    int64_t made_ = 0;         // demoted, less what the exchange promoted: its own, between headroom and floor
    int64_t limit_ = 0;
    int64_t resident_ = 0;    // on top-tier nodes
    bool resident_known_ = false;
    bool limit_tight_ = false;
    Tick tight_until_ = 0;
    bool lower_full_ = false;
    Tick lower_full_until_ = 0;
};

}    // namespace pghot
