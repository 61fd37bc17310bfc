// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel/address_space.h"

#include <linux/mempolicy.h>

#include <algorithm>

#include "runtime/kernel/text.h"

namespace pghot {
namespace {

// Names the kernel gives to anonymous memory that is ordinary: [heap], [stack], [anon:...] of prctl. What else has a
// name in brackets ([vdso], [vvar], [vsyscall], [uprobes]) belongs to the kernel.
bool is_anonymous_name(std::string_view name) {
    return name.empty() || name == "[heap]" || name.starts_with("[stack") || name.starts_with("[anon:");
}

uint64_t nodes_that(const Topology& topology, bool (Topology::*holds)(NodeId) const) {
    uint64_t mask = 0;
    for (int16_t node = 0; node < topology.node_count; ++node)
        if ((topology.*holds)(NodeId{node})) mask |= 1ull << node;
    return mask;
}

// Of the nodes of a tier, those that the policy leaves.
uint64_t allowed_of(uint64_t tier, const sys::MemoryPolicy& policy) {
    switch (policy.mode) {
        case MPOL_DEFAULT:
        case MPOL_LOCAL:
            return tier;
        case MPOL_PREFERRED:
            return policy.nodes == 0 ? tier : tier & policy.nodes;    // an empty mask is how older kernels say local
        case MPOL_BIND:
        case MPOL_PREFERRED_MANY:
            return tier & policy.nodes;
        default:
            return 0;    // the INTERLEAVE kinds, and modes newer than this library
    }
}

}    // namespace

bool parse_mapping(std::string_view line, Mapping& out) {
    if (!take_number(line, out.begin, 16) || !take_char(line, '-') || !take_number(line, out.end, 16)) return false;
    if (!take_char(line, ' ') || line.size() < 5 || out.end <= out.begin) return false;
    const bool is_private = line[3] == 'p';
    const bool accessible = line[0] == 'r' || line[1] == 'w';
    line.remove_prefix(4);
    uint64_t offset = 0, inode = 0;
    unsigned major = 0, minor = 0;
    if (!take_char(line, ' ') || !take_number(line, offset, 16) || !take_char(line, ' ')) return false;
    if (!take_number(line, major, 16) || !take_char(line, ':') || !take_number(line, minor, 16)) return false;
    if (!take_char(line, ' ') || !take_number(line, inode)) return false;
    skip_spaces(line);
    out.movable_kind = is_private && accessible && inode == 0 && is_anonymous_name(line);
    return true;
}

uint64_t promotion_targets(const sys::MemoryPolicy& policy, const Topology& topology) {
    return allowed_of(nodes_that(topology, &Topology::is_top), policy);
}

uint64_t demotion_targets(const sys::MemoryPolicy& policy, const Topology& topology) {
    return allowed_of(nodes_that(topology, &Topology::takes_demotions), policy);
}

int AddressSpace::refresh(FileSystem& files, PolicyOf targets_of) {
    char buffer[16384];
    bool first = true;
    // thread-self: /proc/self is the main thread, which has no mappings once it has left by pthread_exit.
    const int result = files.lines("/proc/thread-self/maps", buffer, [&](std::string_view line) {
        if (first) count_ = left_out_ = 0;
        first = false;
        Mapping mapping;
        if (parse_mapping(line, mapping)) add(mapping, mapping.movable_kind ? targets_of(mapping.begin) : 0);
        return true;
    });
    return first ? result : 0;
}

void AddressSpace::add(const Mapping& mapping, uint64_t targets) {
    // Neighbours that answer alike are one range: a heap split by mprotect or by name stays one entry.
    if (count_ > 0 && ranges_[count_ - 1].end == mapping.begin && ranges_[count_ - 1].targets == targets) {
        ranges_[count_ - 1].end = mapping.end;
        return;
    }
    if (count_ == ranges_.size()) {
        ++left_out_;
        return;
    }
    ranges_[count_++] = AddressRange{mapping.begin, mapping.end, targets};
}

const AddressRange* AddressSpace::find(uintptr_t address) const {
    const auto begin = ranges_.begin();
    const auto end = begin + static_cast<std::ptrdiff_t>(count_);
    const auto after = std::upper_bound(
        begin, end, address, [](uintptr_t wanted, const AddressRange& range) { return wanted < range.begin; });
    if (after == begin) return nullptr;
    const AddressRange& candidate = *(after - 1);
    return address < candidate.end ? &candidate : nullptr;
}

}    // namespace pghot
