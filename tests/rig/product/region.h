// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>

// Memory of a test program on the emulated machine: placed on a node first, then used. Knows nothing of libpghot.
class Region {
public:
    enum class Policy { kReset, kKeepBound };
    enum class Pages { kBase, kHuge };

    // Maps `bytes` and touches them on `node`; the policy is reset to default afterwards or stays MPOL_BIND. Huge pages
    // are asked for at multiples of 2 MiB; whether the kernel gives them is for the test to see.
    Region(size_t bytes, int node, Policy policy, Pages pages = Pages::kBase);
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
    void* mapping_;
    size_t round_ = 0;
};
