// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "runtime/base/topology.h"
#include "runtime/kernel/filesystem.h"

namespace pghot {

// What the user said about tiers: bit per node. Both zero: the machine is asked.
struct TierOverrides {
    uint64_t lower_nodes = 0;    // PGHOT_LOWER_NODES: exactly these are the lower tier
    uint64_t top_nodes = 0;      // PGHOT_TOP_NODES: never the lower tier
};

// Reads nodes, CPUs, distances and tiers from sysfs into `out` (about 15 KiB, storage of the caller).
// `allowed` is the cpuset's mask. A file that is missing leaves its fields unknown; without /sys there are no nodes.
//
// A node is in the lower tier when it has memory and is slower than the slowest node with CPUs, told by (first that
// knows): memory tier number, HMAT read latency, distance as seen from the CPU nodes. Rows of CPU-less nodes are never
// read: firmware gives 255 there. Having no CPUs alone says nothing: HBM nodes have none either.
void read_topology(FileSystem& files, uint64_t allowed, const TierOverrides& overrides, Topology& out);

// Free memory of each node in bytes (nodeN/meminfo); a node that cannot be read answers 0.
uint64_t node_free_bytes(FileSystem& files, NodeId node);
// The same with file pages that were not used lately: a node that has run for a while is full of them, and the kernel
// drops them for whoever wants memory, a move included.
uint64_t node_available_bytes(FileSystem& files, NodeId node);
// The kernel's low watermark of each node in bytes (/proc/zoneinfo): below it every allocation wakes kswapd. Sets the
// first `bytes.size()` nodes; 0 where nothing is known.
void read_low_watermarks(FileSystem& files, std::span<uint64_t> bytes);

}    // namespace pghot
