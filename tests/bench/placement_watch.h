// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/json.h"

namespace tier_bench {

// Pages of which a workload knows where they should be.
struct WatchedSet {
    std::string name;
    std::vector<void*> pages;
    uint64_t wanted_nodes;    // bit N for node N: pages that lie there are local
};

// Every page of `memory`, or `most` of them at equal distances.
std::vector<void*> some_pages(std::span<std::byte> memory, size_t most);

// What was seen of one set.
struct Sightings {
    std::optional<double> local_us;        // from begin() to the first look with 90 % of the pages local
    uint64_t local_pages = 0;              // at the last look
    std::array<uint64_t, 4> by_moves{};    // pages that changed their node 0, 1, 2, 3 and more times
    uint64_t promoted_twice = 0;           // pages that left a node without CPUs more than once
};

// Looks from outside the timed threads where pages of the watched sets lie, every `interval`: a thread that asks
// move_pages, on a CPU that runs none of the workload's threads where there is one. What it costs is in cpu_us() and,
// in the rig, a few hundred instructions a look of its CPU's modelled time: 256 pages a set cost about a millisecond of
// an emulated CPU a look. A page that moves twice between two looks counts as moved once or not at all.
class PlacementWatch {
public:
    static constexpr size_t kPagesOfSet = 256;
    static constexpr double kLocalShare = 0.9;

    // `busy_cpus` are the CPUs of the workload's threads. An interval of 0: only a first and a last look.
    PlacementWatch(std::vector<WatchedSet> sets, std::chrono::milliseconds interval, const std::vector<int>& busy_cpus);
    ~PlacementWatch() { stop(); }
    PlacementWatch(const PlacementWatch&) = delete;
    PlacementWatch& operator=(const PlacementWatch&) = delete;

    // The set's pages are used from now on: its time starts. Any thread.
    void begin(size_t set);
    // A last look; the results are final. Any thread, once or more.
    void stop();

    size_t size() const { return sets_.size(); }
    const WatchedSet& set(size_t index) const { return sets_[index].watched; }
    // After stop().
    Sightings sightings(size_t index) const;
    double cpu_us() const { return cpu_us_; }
    uint64_t looks() const { return looks_; }

private:
    using Clock = std::chrono::steady_clock;
    struct PageHistory {
        int node = -1;    // at the last look; negative: not seen yet
        uint8_t moves = 0;
        uint8_t promotions = 0;
    };
    struct State {
        WatchedSet watched;
        std::vector<PageHistory> history;
        std::optional<Clock::time_point> began;
        std::optional<double> local_us;
        uint64_t local_pages = 0;
    };
    void loop(std::vector<int> busy_cpus);
    void look();
    void look_at(State& set);

    std::chrono::milliseconds interval_;
    std::vector<State> sets_;    // guarded by mutex_ until the thread has ended
    std::vector<int> nodes_;     // of the set that is being looked at
    uint64_t nodes_with_cpus_ = 0;
    double cpu_us_ = 0;
    uint64_t looks_ = 0;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool over_ = false;
    std::thread thread_;
};

// {"name","pages","local_pages","local_us" (null: never),"moved_pages":[0,1,2,more times],"promoted_twice"} for each
// set.
std::string sets_as_json(const PlacementWatch& watch);

}    // namespace tier_bench
