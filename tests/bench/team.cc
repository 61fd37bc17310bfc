// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/team.h"

#include <algorithm>
#include <utility>

#include "tests/bench/cpus.h"

namespace tier_bench {

Team::Team(std::vector<int> cpus)
    : cpus_(std::move(cpus)),
      begin_(static_cast<std::ptrdiff_t>(cpus_.size()) + 1),
      end_(static_cast<std::ptrdiff_t>(cpus_.size()) + 1),
      ends_(cpus_.size()) {
    for (size_t thread = 0; thread < cpus_.size(); ++thread) threads_.emplace_back([this, thread] { loop(thread); });
    end_.arrive_and_wait();    // all have tried to pin themselves
}

Team::~Team() {
    work_ = nullptr;
    begin_.arrive_and_wait();
    for (std::thread& thread : threads_) thread.join();
}

void Team::loop(size_t thread) {
    if (!pin_to(cpus_[thread])) pinned_ = false;
    end_.arrive_and_wait();
    while (true) {
        begin_.arrive_and_wait();
        if (work_ == nullptr) return;
        (*work_)(thread);
        ends_[thread] = Clock::now();
        end_.arrive_and_wait();
    }
}

Phase Team::run(std::string name, const std::function<void(size_t thread)>& work) {
    Phase phase;
    phase.name = std::move(name);
    work_ = &work;
    const Counters before = read_counters();
    const Clock::time_point start = Clock::now();
    begin_.arrive_and_wait();
    end_.arrive_and_wait();
    phase.counted = read_counters() - before;
    const Clock::time_point end = *std::max_element(ends_.begin(), ends_.end());
    phase.wall_us = std::chrono::duration<double, std::micro>(end - start).count();
    phase.modelled = modelled_time(phase.counted, {cpus_.begin(), cpus_.end()});
    return phase;
}

}    // namespace tier_bench
