// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>

// Memory of a test program on the emulated machine: placed on a node first, then used. Knows nothing of libpghot.
class Region {
public:
    enum class Policy { kReset, kKeepBound };

    // Maps `bytes` of base pages and touches them on `node`; the policy is reset to default afterwards or stays
    // MPOL_BIND.
    Region(size_t bytes, int node, Policy policy);
    ~Region();
    Region(const Region&) = delete;
    Region& operator=(const Region&) = delete;

    // Reads a line of every page once, in order, a different line each time.
    void read_once();
    // Pages on each node, as the kernel says.
    std::map<int, size_t> pages_per_node() const;

private:
    char* at_;
    size_t bytes_;
    size_t round_ = 0;
};
