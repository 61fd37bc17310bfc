// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "runtime/base/topology.h"
#include "runtime/base/units.h"
#include "runtime/policy/page_record.h"
#include "runtime/policy/parameters.h"

namespace pghot {

// Callers' nodes as the four bits of a page record, and the top-tier node where a caller's pages should live. Copies
// what it needs of the topology. Owned by the policy, sampler thread only.
//
// The first 15 nodes with CPUs have an index of their own; on larger machines the others share that of the nearest of
// them. Index 15 is the unknown caller.
class TargetMap {
public:
    TargetMap(const Topology& topology, TargetMode mode, NodeId fixed);

    // Any node number, also none.
    uint8_t caller(NodeId node) const {
        return node.valid() && node.value < static_cast<int>(kMaxNodes) ? caller_of_[static_cast<size_t>(node.value)]
                                                                        : kUnknownCaller;
    }
    // Whether pages go to another place for another caller.
    bool depends_on_caller() const { return mode_ == TargetMode::kCaller; }
    // The node for the next move of that caller's pages: its own when it is a top-tier node with room, else the nearest
    // such node by the row of the caller; nodes that are no nearer than the lower tier do not stand in for a full one.
    // kNoNode when there is none now. `open`: nodes, bit each, that can take what is to be moved (Capacity).
    NodeId choose(uint8_t caller, Tick now, uint64_t open = ~0ull);
    // The caller's own node, if it is a top-tier node with room and pages go to their callers; else kNoNode.
    NodeId own_node(uint8_t caller, Tick now, uint64_t open) const;
    // The kernel found no room on `node`: it is not chosen before `until`.
    void mark_full(NodeId node, Tick until);

private:
    struct Row {
        std::array<int8_t, kMaxNodes> node{};    // top-tier nodes, nearest first
        uint8_t count = 0;                       // of these, usable
    };
    static Row row_of(const Topology& topology, NodeId caller);
    bool has_room(NodeId node, Tick now, uint64_t open) const;
    NodeId choose_in_turn(Tick now, uint64_t open);

    TargetMode mode_;
    NodeId fixed_ = kNoNode;    // only if it is a top-tier node
    std::array<uint8_t, kMaxNodes> caller_of_{};
    std::array<Row, kCallers> rows_{};
    Row top_{};    // for kAlternate, by number
    uint8_t turn_ = 0;
    uint64_t full_ = 0;    // bit per node
    std::array<Tick, kMaxNodes> full_until_{};
};

}    // namespace pghot
