// SPDX-License-Identifier: Apache-2.0
#include "runtime/policy/target_map.h"

#include <algorithm>

namespace pghot {
namespace {

NodeId node_at(unsigned number) { return NodeId{static_cast<int16_t>(number)}; }

unsigned distance(const Topology& topology, NodeId from, NodeId to) {
    return topology.distance[static_cast<size_t>(from.value)][static_cast<size_t>(to.value)];
}

unsigned nearest_lower(const Topology& topology, NodeId from) {
    unsigned nearest = ~0u;
    for (unsigned i = 0; i < topology.node_count; ++i)
        if (topology.is_lower(node_at(i))) nearest = std::min(nearest, distance(topology, from, node_at(i)));
    return nearest;
}

}    // namespace

TargetMap::TargetMap(const Topology& topology, TargetMode mode, NodeId fixed)
    : mode_(mode), fixed_(topology.is_top(fixed) ? fixed : kNoNode) {
    std::array<NodeId, kUnknownCaller> with_index{};
    uint8_t callers = 0;
    caller_of_.fill(kUnknownCaller);
    for (unsigned i = 0; i < topology.node_count; ++i) {
        const NodeId node = node_at(i);
        if (topology.is_top(node)) top_.node[top_.count++] = static_cast<int8_t>(i);
        if (!topology[node].has_cpus) continue;
        if (callers < kUnknownCaller) {
            with_index[callers] = node;
            rows_[callers] = row_of(topology, node);
            caller_of_[i] = callers++;
            continue;
        }
        const auto nearest = std::min_element(with_index.begin(), with_index.end(), [&](NodeId a, NodeId b) {
            return distance(topology, node, a) < distance(topology, node, b);
        });
        caller_of_[i] = static_cast<uint8_t>(nearest - with_index.begin());
    }
    rows_[kUnknownCaller] = callers > 0 ? rows_[0] : top_;
}

TargetMap::Row TargetMap::row_of(const Topology& topology, NodeId caller) {
    Row row;
    for (unsigned i = 0; i < topology.node_count; ++i)
        if (topology.is_top(node_at(i))) row.node[row.count++] = static_cast<int8_t>(i);
    // Own node first even where the firmware's distances are all alike; equal distances by number.
    const auto far = [&](int8_t node) {
        return node == caller.value ? 0u : distance(topology, caller, node_at(static_cast<unsigned>(node)));
    };
    std::sort(row.node.begin(), row.node.begin() + row.count,
              [&](int8_t a, int8_t b) { return far(a) != far(b) ? far(a) < far(b) : a < b; });
    const unsigned limit = nearest_lower(topology, caller);
    while (row.count > 1 && far(row.node[row.count - 1u]) >= limit) --row.count;
    return row;
}

bool TargetMap::has_room(NodeId node, Tick now, uint64_t open) const {
    const auto i = static_cast<size_t>(node.value);
    if ((open >> i & 1) == 0) return false;
    return (full_ >> i & 1) == 0 || later_by(now, full_until_[i]) >= 0;
}

NodeId TargetMap::choose(uint8_t caller, Tick now, uint64_t open) {
    if (mode_ == TargetMode::kAlternate) return choose_in_turn(now, open);
    if (mode_ == TargetMode::kFixed && fixed_.valid() && has_room(fixed_, now, open)) return fixed_;
    const Row& row = rows_[caller];
    for (unsigned i = 0; i < row.count; ++i)
        if (const NodeId node{row.node[i]}; has_room(node, now, open)) return node;
    return kNoNode;
}

NodeId TargetMap::own_node(uint8_t caller, Tick now, uint64_t open) const {
    if (!depends_on_caller() || caller == kUnknownCaller || rows_[caller].count == 0) return kNoNode;
    const NodeId node{rows_[caller].node[0]};
    const bool is_own = caller_of_[static_cast<size_t>(node.value)] == caller;
    return is_own && has_room(node, now, open) ? node : kNoNode;
}

NodeId TargetMap::choose_in_turn(Tick now, uint64_t open) {
    for (unsigned i = 0; i < top_.count; ++i) {
        const NodeId node{top_.node[turn_ % top_.count]};
        turn_ = static_cast<uint8_t>((turn_ + 1) % top_.count);
        if (has_room(node, now, open)) return node;
    }
    return kNoNode;
}

void TargetMap::mark_full(NodeId node, Tick until) {
    if (!node.valid() || node.value >= static_cast<int>(kMaxNodes)) return;
    full_ |= 1ull << node.value;
    full_until_[static_cast<size_t>(node.value)] = until;
}

}    // namespace pghot
