// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/function_ref.h"
#include "runtime/base/topology.h"
#include "runtime/kernel/address_space.h"

namespace pghot {

// Where the program's movable memory lies, by asking the kernel about a sample of its pages: for PGHOT_DRAM_LIMIT, and
// to find cold memory that was never sampled.
//
// Every page at equal distances, from another start each time: exact up to 16 MiB of mappings, a standard error of
// below 1 % of them from there on. At 0.2 us a page that is below a millisecond, whatever the size.
// /proc/self/numa_maps would tell exactly, but walks every page with the program's mmap lock held: half a second at 100
// GB.
//
// Owned by the sampler.
class Census {
public:
    // As move_pages(2) that only asks: 0 or -errno.
    using Ask = FunctionRef<long(std::span<void* const> pages, std::span<int> statuses)>;
    using Found = FunctionRef<void(uintptr_t page, NodeId node)>;
    using Skip = FunctionRef<bool(uintptr_t page)>;

    // Visits every page that it finds present on a node, and answers how many pages of the program lie in the top tier.
    uint64_t take(std::span<const AddressRange> ranges, const Topology& topology, Ask ask, Skip skip, Found found);

private:
    static constexpr uint64_t kQuestions = 4096;
    static constexpr size_t kPagesPerCall = 256;    // short calls: the kernel holds the mmap lock in each

    std::array<void*, kPagesPerCall> pages_{};
    std::array<int, kPagesPerCall> statuses_{};
    uint64_t turn_ = 0;
};

}    // namespace pghot
