// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <barrier>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/phase.h"

namespace tier_bench {

using Clock = std::chrono::steady_clock;

// The threads that do a workload's accesses, one for each CPU named (a CPU may be named more than once), pinned. They
// live over all phases, as a program's do. Made, run and destroyed by one thread, which only waits while they work.
class Team {
public:
    explicit Team(std::vector<int> cpus);
    ~Team();
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    size_t size() const { return cpus_.size(); }
    bool pinned() const { return pinned_; }
    const std::vector<int>& cpus() const { return cpus_; }

    // Every thread runs work(its number); measured from the release of all to the end of the last.
    Phase run(std::string name, const std::function<void(size_t thread)>& work);

private:
    void loop(size_t thread);

    const std::vector<int> cpus_;
    std::atomic<bool> pinned_{true};
    const std::function<void(size_t)>* work_ = nullptr;    // null at the start of a phase: the end
    std::barrier<> begin_;                                 // publishes work_
    std::barrier<> end_;                                   // publishes ends_
    std::vector<Clock::time_point> ends_;
    std::vector<std::thread> threads_;
};

}    // namespace tier_bench
