// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/placement_watch.h"

#include <numaif.h>
#include <time.h>

#include <algorithm>
#include <utility>

#include "tests/bench/cpus.h"
#include "tests/bench/memory.h"

namespace tier_bench {
namespace {

double own_cpu_us() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

bool is_in(int node, uint64_t nodes) { return node >= 0 && node < 64 && (nodes >> node & 1) != 0; }

void count_up(uint8_t& count) { count = static_cast<uint8_t>(std::min(count + 1, 255)); }

}    // namespace

std::vector<void*> some_pages(std::span<std::byte> memory, size_t most) {
    const size_t pages = memory.size() / kPageBytes, wanted = std::min(pages, most);
    std::vector<void*> result;
    for (size_t i = 0; i < wanted; ++i) result.push_back(&memory[pages * i / wanted * kPageBytes]);
    return result;
}

PlacementWatch::PlacementWatch(std::vector<WatchedSet> sets, std::chrono::milliseconds interval,
                               const std::vector<int>& busy_cpus)
    : interval_(interval) {
    for (const int node : nodes_with_cpus()) nodes_with_cpus_ |= uint64_t{1} << node;
    for (WatchedSet& set : sets) {
        const size_t pages = set.pages.size();
        sets_.push_back({std::move(set), std::vector<PageHistory>(pages), {}, {}, 0});
    }
    look();    // where the pages start
    if (interval_.count() > 0) thread_ = std::thread([this, busy_cpus] { loop(busy_cpus); });
}

void PlacementWatch::begin(size_t set) {
    const std::lock_guard lock(mutex_);
    sets_[set].began = Clock::now();
}

void PlacementWatch::stop() {
    {
        const std::lock_guard lock(mutex_);
        if (over_) return;
        over_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
    look();
}

void PlacementWatch::loop(std::vector<int> busy_cpus) {
    for (const int node : nodes_with_cpus()) {
        const std::vector<int> cpus = cpus_of(node);
        const auto idle = std::find_if(cpus.begin(), cpus.end(), [&](int cpu) {
            return std::find(busy_cpus.begin(), busy_cpus.end(), cpu) == busy_cpus.end();
        });
        if (idle != cpus.end() && pin_to(*idle)) break;
    }
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, interval_, [this] { return over_; })) {
        look();
        cpu_us_ = own_cpu_us();
    }
}

void PlacementWatch::look() {
    for (State& set : sets_) look_at(set);
    ++looks_;
}

void PlacementWatch::look_at(State& set) {
    std::vector<void*>& pages = set.watched.pages;
    nodes_.resize(pages.size());
    if (pages.empty() || move_pages(0, pages.size(), pages.data(), nullptr, nodes_.data(), 0) != 0) return;
    set.local_pages = 0;
    for (size_t i = 0; i < pages.size(); ++i) {
        PageHistory& page = set.history[i];
        const int node = nodes_[i];
        set.local_pages += is_in(node, set.watched.wanted_nodes);
        if (node < 0) continue;    // not present now
        if (page.node >= 0 && page.node != node) {
            count_up(page.moves);
            if (!is_in(page.node, nodes_with_cpus_) && is_in(node, nodes_with_cpus_)) count_up(page.promotions);
        }
        page.node = node;
    }
    const bool is_local = static_cast<double>(set.local_pages) >= kLocalShare * static_cast<double>(pages.size());
    if (is_local && set.began && !set.local_us)
        set.local_us = std::chrono::duration<double, std::micro>(Clock::now() - *set.began).count();
}

Sightings PlacementWatch::sightings(size_t index) const {
    const State& set = sets_[index];
    Sightings result{set.local_us, set.local_pages, {}, 0};
    for (const PageHistory& page : set.history) {
        ++result.by_moves[std::min<size_t>(page.moves, result.by_moves.size() - 1)];
        result.promoted_twice += page.promotions > 1;
    }
    return result;
}

std::string sets_as_json(const PlacementWatch& watch) {
    std::vector<size_t> indices(watch.size());
    for (size_t i = 0; i < indices.size(); ++i) indices[i] = i;
    return json_array(indices, [&](size_t index) {
        const Sightings seen = watch.sightings(index);
        JsonObject json;
        json.add("name", watch.set(index).name);
        json.add("pages", watch.set(index).pages.size());
        json.add("local_pages", seen.local_pages);
        if (seen.local_us)
            json.add_us("local_us", *seen.local_us);
        else
            json.raw("local_us", "null");
        json.raw("moved_pages", json_array(seen.by_moves, [](uint64_t pages) { return std::to_string(pages); }));
        json.add("promoted_twice", seen.promoted_twice);
        return json.text();
    });
}

}    // namespace tier_bench
