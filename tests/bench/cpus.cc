// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/cpus.h"

#include <numa.h>
#include <pthread.h>

namespace tier_bench {

std::vector<int> cpus_of(int node) {
    std::vector<int> cpus;
    bitmask* mask = numa_allocate_cpumask();
    if (node <= numa_max_node() && numa_node_to_cpus(node, mask) == 0)
        for (unsigned cpu = 0; cpu < mask->size; ++cpu)
            if (numa_bitmask_isbitset(mask, cpu)) cpus.push_back(static_cast<int>(cpu));
    numa_free_cpumask(mask);
    return cpus;
}

std::vector<int> nodes_with_cpus() {
    std::vector<int> nodes;
    for (int node = 0; node <= numa_max_node(); ++node)
        if (!cpus_of(node).empty()) nodes.push_back(node);
    return nodes;
}

bool pin_to(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

OnNode::OnNode(int node) {
    const std::vector<int> cpus = cpus_of(node);
    if (cpus.empty() || pthread_getaffinity_np(pthread_self(), sizeof before_, &before_) != 0) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int cpu : cpus) CPU_SET(cpu, &set);
    moved_ = pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

OnNode::~OnNode() {
    if (moved_) pthread_setaffinity_np(pthread_self(), sizeof before_, &before_);
}

}    // namespace tier_bench
