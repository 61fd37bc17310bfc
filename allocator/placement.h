// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "allocator/placement_rules.h"

// The placements of this process: what PGHOT_PLACEMENT said, which nodes that means here, and what went wrong.
//
// The rules are read when jemalloc starts, before its first mapping. Nodes of "slow" and "dram" become known when the
// library's start-up has looked at the machine; until then such memory is born local, and is put right afterwards.
// A placement that the kernel refuses is local from then on; malloc never fails because of it.
namespace pghot {

// Reads PGHOT_PLACEMENT from the process's environment (not with AT_SECURE). Called once, by jemalloc's start under its
// lock: no allocation, no libc function that another preload library could wrap.
void load_placement_rules();

// Immutable after load_placement_rules.
const PlacementRules& placement_rules();

// True when some placement waits for set_placement_nodes: only then start-up needs to look at the machine for us.
bool placement_needs_nodes();

// Tells which nodes "dram" and "slow" are (bit per node; 0: there is none) and applies it to what is mapped already.
// Once, by start-up, on a thread that holds no lock of jemalloc.
void set_placement_nodes(uint64_t dram_nodes, uint64_t slow_nodes);

// Binds fresh pages to their placement; nothing for "local". Any thread, under jemalloc's locks; keeps errno.
void bind_to_placement(uintptr_t begin, size_t bytes, uint8_t placement);

// The first thing that could not be had, as one line without a newline, written into `storage` and cut at its end:
// a text that could not be read, nodes that do not exist, or the kernel's refusal. Empty when all is well. Any thread.
std::string_view placement_problem(std::span<char> storage);

}    // namespace pghot
