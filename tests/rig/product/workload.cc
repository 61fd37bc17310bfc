// SPDX-License-Identifier: Apache-2.0
// Programs whose placement is judged after a run on the emulated machine:
//   workload sweep SECONDS       one region read all the time, one swept every ten seconds
//   workload bound SECONDS       one region free to move, one that the program keeps bound to the lower tier
//   workload huge SECONDS        a region of huge pages
//   workload descriptors SECONDS the descriptor table before, during and after sampling; every descriptor is closed
//   workload last-thread SECONDS main leaves by pthread_exit; a worker goes on and prints last
// All memory begins on node 2. Prints one JSON object.
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "region.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kRegionBytes = 16 << 20;
constexpr int kLowerNode = 2;
constexpr auto kSweepEvery = std::chrono::seconds(10);

std::string json(const std::map<int, size_t>& pages) {
    std::string text = "{";
    for (const auto& [node, count] : pages)
        text += (text.size() > 1 ? "," : "") + ("\"" + std::to_string(node) + "\":" + std::to_string(count));
    return text + "}";
}

// Reads `hot` until the time is over; `now_and_then` is called between its rounds.
template <typename Function>
void read_for(Region& hot, std::chrono::seconds duration, Function now_and_then) {
    const auto end = Clock::now() + duration;
    while (Clock::now() < end) {
        hot.read_once();
        now_and_then();
    }
}

void pin_to_cpu(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

void sweep(std::chrono::seconds duration) {
    Region hot(kRegionBytes, kLowerNode, Region::Policy::kReset);
    Region cold(kRegionBytes, kLowerNode, Region::Policy::kReset);
    auto next_sweep = Clock::now() + kSweepEvery / 2;
    int sweeps = 0;
    read_for(hot, duration, [&] {
        if (Clock::now() < next_sweep) return;
        cold.read_once();
        next_sweep += kSweepEvery;
        ++sweeps;
    });
    std::printf("{\"hot\":%s,\"swept\":%s,\"sweeps\":%d}\n", json(hot.pages_per_node()).c_str(),
                json(cold.pages_per_node()).c_str(), sweeps);
}

void bound(std::chrono::seconds duration) {
    Region free_region(kRegionBytes, kLowerNode, Region::Policy::kReset);
    Region bound_region(kRegionBytes, kLowerNode, Region::Policy::kKeepBound);
    read_for(free_region, duration, [&] { bound_region.read_once(); });
    std::printf("{\"free\":%s,\"bound\":%s}\n", json(free_region.pages_per_node()).c_str(),
                json(bound_region.pages_per_node()).c_str());
}

void huge(std::chrono::seconds duration) {
    Region region(4 * kRegionBytes, kLowerNode, Region::Policy::kReset, Region::Pages::kHuge);
    read_for(region, duration, [] {});
    std::printf("{\"huge\":%s}\n", json(region.pages_per_node()).c_str());
}

// What /proc/self/fd lists, and the number that the next open gets.
std::string descriptors() {
    std::string text;
    DIR* folder = opendir("/proc/self/fd");
    const int own = dirfd(folder);
    while (const dirent* entry = readdir(folder))
        if (entry->d_name[0] != '.' && std::atoi(entry->d_name) != own) text += std::string(entry->d_name) + " ";
    closedir(folder);
    const int next = open("/dev/null", O_RDONLY);
    close(next);
    return text + "next " + std::to_string(next);
}

void check_descriptors(std::chrono::seconds duration) {
    Region hot(kRegionBytes, kLowerNode, Region::Policy::kReset);
    // The library starts at an allocation; the start itself is watched too.
    const std::string before = descriptors();
    free(std::malloc(1 << 20));
    std::string during = before;
    bool first = true;
    read_for(hot, duration, [&] {
        const std::string now = descriptors();
        if (now != before) during = now;
        if (first) {
            for (int fd = 3; fd < 4096; ++fd) close(fd);    // what daemons and shells do
            first = false;
        }
    });
    std::printf("{\"before\":\"%s\",\"during\":\"%s\",\"hot\":%s}\n", before.c_str(), during.c_str(),
                json(hot.pages_per_node()).c_str());
}

void* last_worker(void* argument) {
    const std::unique_ptr<std::chrono::seconds> duration(static_cast<std::chrono::seconds*>(argument));
    Region hot(kRegionBytes, kLowerNode, Region::Policy::kReset);
    read_for(hot, *duration, [] {});
    std::printf("{\"hot\":%s}\n", json(hot.pages_per_node()).c_str());    // flushed by exit(), not here
    return nullptr;
}

[[noreturn]] void leave_main(std::chrono::seconds duration) {
    pthread_t thread;
    pthread_create(&thread, nullptr, last_worker, new std::chrono::seconds(duration));
    pthread_exit(nullptr);
}

}    // namespace

int main(int count, char** arguments) {
    const std::string what = count > 1 ? arguments[1] : "";
    const std::chrono::seconds duration(count > 2 ? std::atoi(arguments[2]) : 5);
    pin_to_cpu(0);
    if (what == "sweep")
        sweep(duration);
    else if (what == "bound")
        bound(duration);
    else if (what == "huge")
        huge(duration);
    else if (what == "descriptors")
        check_descriptors(duration);
    else if (what == "last-thread")
        leave_main(duration);
    else
        return 2;
    return 0;
}
