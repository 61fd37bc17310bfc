// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "runtime/base/units.h"

namespace pghot {

inline constexpr unsigned kMaxNodes = 64;    // nodes numbered higher are ignored; doctor says so
inline constexpr unsigned kMaxCpus = 4096;

// How the lower tier was told apart, for doctor and the report.
enum class TierEvidence : uint8_t { kNone, kUser, kMemoryTier, kHmat, kDistance };

// One node as the policy needs it. Plain data: filled by runtime/kernel from sysfs, or by a test.
struct Node {
    bool online_memory = false;    // has_memory
    bool has_cpus = false;
    bool allowed = false;            // in the cpuset's mems of this process
    bool lower_tier = false;         // slower than the slowest node that has CPUs
    int16_t memory_tier = -1;        // N of memory_tierN; lower is faster; -1 unknown
    uint32_t read_latency_ns = 0;    // HMAT access class 1, else 0; 0 unknown
    uint64_t total_bytes = 0;
};

// The machine. Immutable after it was made; shared by threads without locks.
struct Topology {
    std::array<Node, kMaxNodes> nodes{};
    std::array<std::array<uint8_t, kMaxNodes>, kMaxNodes> distance{};    // row = from; only rows of CPU nodes count
    std::array<int16_t, kMaxCpus> node_of_cpu{};                         // -1 where the CPU does not exist
    uint16_t node_count = 0;                                             // highest node number with memory or CPUs + 1
    uint16_t cpu_count = 0;                                              // likewise
    TierEvidence evidence = TierEvidence::kNone;

    NodeId node_of(uint32_t cpu) const { return cpu < kMaxCpus ? NodeId{node_of_cpu[cpu]} : kNoNode; }
    bool valid(NodeId node) const { return node.valid() && node.value < node_count; }
    const Node& operator[](NodeId node) const { return nodes[static_cast<unsigned>(node.value)]; }
    bool is_lower(NodeId node) const { return valid(node) && (*this)[node].lower_tier; }
    // A node that pages may be demoted to.
    bool takes_demotions(NodeId node) const {
        return is_lower(node) && (*this)[node].online_memory && (*this)[node].allowed;
    }
    // A node that pages may be promoted to.
    bool is_top(NodeId node) const {
        return valid(node) && (*this)[node].online_memory && !(*this)[node].lower_tier && (*this)[node].allowed;
    }
    bool has_lower_tier() const {
        for (unsigned i = 0; i < node_count; ++i)
            if (nodes[i].lower_tier) return true;
        return false;
    }
};

}    // namespace pghot
