// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/base/topology.h"
#include "runtime/base/units.h"
#include "runtime/kernel/filesystem.h"
#include "runtime/kernel/syscalls.h"

namespace pghot {

// A mapping of the process as /proc/self/maps shows it, reduced to what decides whether its pages may move.
struct Mapping {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    bool movable_kind = false;    // private and anonymous: heap, .bss, brk, stacks, mmap
};

// Parses one line of /proc/PID/maps. False where the line is not one.
bool parse_mapping(std::string_view line, Mapping& out);

// Bit per node that a page under this policy may be promoted to. A policy that the program set limits its targets:
// BIND and the PREFERRED kinds to top-tier nodes of their mask; interleaving is a choice of placement, not moved; a
// mask of lower-tier nodes alone says "stay". Default and local leave every top-tier node.
uint64_t promotion_targets(const sys::MemoryPolicy& policy, const Topology& topology);

// Bit per node of the lower tier that a page under this policy may be demoted to, by the same rules: a policy that
// names top-tier nodes alone says that its pages stay there, even where PREFERRED would let new ones fall back.
uint64_t demotion_targets(const sys::MemoryPolicy& policy, const Topology& topology);

// One range of the snapshot.
struct AddressRange {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    uint64_t targets = 0;    // bit per node; 0: not to be moved
};

// What the process has mapped and what may move where: a sorted copy of /proc/self/maps, read by the sampler now and
// then. Storage is the caller's; more mappings than fit are left out (their pages stay) and counted.
class AddressSpace {
public:
    explicit AddressSpace(std::span<AddressRange> storage) : ranges_(storage) {}

    // Asks the policy of one range: in the library the kernel (237 ns a range, where numa_maps walks every page), in a
    // test a table.
    using PolicyOf = FunctionRef<uint64_t(uintptr_t begin)>;

    // Reads maps anew. 0 or -errno; on an error the old picture stays.
    int refresh(FileSystem& files, PolicyOf targets_of);

    // The range that holds `address`, or null: unmapped when the snapshot was taken.
    const AddressRange* find(uintptr_t address) const;

    size_t size() const { return count_; }
    std::span<const AddressRange> ranges() const { return ranges_.first(count_); }
    size_t left_out() const { return left_out_; }

private:
    void add(const Mapping& mapping, uint64_t targets);

    std::span<AddressRange> ranges_;
    size_t count_ = 0;
    size_t left_out_ = 0;
};

}    // namespace pghot
