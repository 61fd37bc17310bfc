// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <vector>

namespace tier_bench {

// The CPUs of a node; empty for a node without any, and for none.
std::vector<int> cpus_of(int node);

// Nodes that have CPUs, in order.
std::vector<int> nodes_with_cpus();

// Pins the calling thread. False when it may not run there.
bool pin_to(int cpu);

// Keeps the calling thread on a node's CPUs while it lives; changes nothing for a node without CPUs.
class OnNode {
public:
    explicit OnNode(int node);
    ~OnNode();
    OnNode(const OnNode&) = delete;
    OnNode& operator=(const OnNode&) = delete;

private:
    cpu_set_t before_{};
    bool moved_ = false;
};

}    // namespace tier_bench
