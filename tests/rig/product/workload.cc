// SPDX-License-Identifier: Apache-2.0
// Programs whose placement is judged after a run on the emulated machine:
//   workload sweep SECONDS       one region read all the time, one swept every ten seconds
//   workload bound SECONDS       one region free to move, one that the program keeps bound to the lower tier
//   workload second-set SECONDS  one region read all the time, a second one too in the last third
//   workload crowded SECONDS [PAGES]   a region on node 0 that is used no more, and one in the lower tier read all the
//                                time; ends when that is at home, and both have at most PAGES (default 0) on DRAM
//   workload huge SECONDS        a region of huge pages
//   workload descriptors SECONDS the descriptor table before, during and after sampling; every descriptor is closed
//   workload fork SECONDS        half of the time with a forked child that shares the region, half without
//   workload foreign SECONDS     when the region is home, another process stops this one, pushes all of it down and
//   lets it
//                                go on
//   workload push PID            that process
//   workload misplaced SECONDS   a region on node 0 that a thread on node 1 reads
//   workload last-thread SECONDS main leaves by pthread_exit; a worker goes on and prints last
// All memory begins on node 2. Prints one JSON object.
#include <dirent.h>
#include <fcntl.h>
#include <numa.h>
#include <numaif.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
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
constexpr size_t kPageBytes = 4096;
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

void second_set(std::chrono::seconds duration) {
    Region first(kRegionBytes, kLowerNode, Region::Policy::kReset);
    Region second(kRegionBytes, kLowerNode, Region::Policy::kReset);
    const auto begin = Clock::now() + duration * 2 / 3;
    read_for(first, duration, [&] {
        if (Clock::now() >= begin) second.read_once();
    });
    std::printf("{\"first\":%s,\"second\":%s}\n", json(first.pages_per_node()).c_str(),
                json(second.pages_per_node()).c_str());
}

size_t pages_on_dram(const Region& region) {
    size_t pages = 0;
    for (const auto& [node, count] : region.pages_per_node()) pages += node >= 0 && node != kLowerNode ? count : 0;
    return pages;
}

// Ends early when nearly all that is hot is at home, and no more than so many pages in all.
void crowded(std::chrono::seconds duration, size_t most_pages) {
    Region cold(3 * kRegionBytes, 0, Region::Policy::kReset);
    Region hot(kRegionBytes, kLowerNode, Region::Policy::kReset);
    const auto end = Clock::now() + duration;
    auto next_look = Clock::now();
    while (Clock::now() < end) {
        hot.read_once();
        if (Clock::now() < next_look) continue;
        next_look = Clock::now() + std::chrono::seconds(1);
        const size_t home = pages_on_dram(hot);
        if (home * kPageBytes >= kRegionBytes * 19 / 20 && home + pages_on_dram(cold) <= most_pages) break;
    }
    std::printf("{\"hot\":%s,\"cold\":%s}\n", json(hot.pages_per_node()).c_str(), json(cold.pages_per_node()).c_str());
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

// Reads until 95 % of the region is on node 0, or the time is over.
void read_until_home(Region& hot, std::chrono::seconds duration) {
    const auto end = Clock::now() + duration;
    auto next_look = Clock::now();
    while (Clock::now() < end) {
        hot.read_once();
        if (Clock::now() < next_look) continue;
        const auto pages = hot.pages_per_node();
        const auto home = pages.find(0);
        if (home != pages.end() && home->second >= kRegionBytes / kPageBytes * 95 / 100) return;
        next_look = Clock::now() + std::chrono::seconds(1);
    }
}

void share_with_a_child(std::chrono::seconds duration) {
    Region hot(kRegionBytes, kLowerNode, Region::Policy::kReset);
    const pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    read_for(hot, duration / 2, [] {});
    const std::string shared = json(hot.pages_per_node());
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    read_until_home(hot, duration);
    std::printf("{\"shared\":%s,\"alone\":%s}\n", shared.c_str(), json(hot.pages_per_node()).c_str());
}

// As migratepages(8): all of the process from the DRAM nodes to the lower tier.
int push(pid_t pid) {
    const unsigned long from = 0b011, to = 1ul << kLowerNode;
    if (kill(pid, SIGSTOP) != 0) return 1;
    const long left = migrate_pages(pid, 64, &from, &to);
    kill(pid, SIGCONT);
    return left < 0 ? 1 : 0;
}

void be_pushed(const char* program) {
    const std::string own_pid = std::to_string(getpid());
    const pid_t pusher = fork();
    if (pusher == 0) {
        unsetenv("LD_PRELOAD");
        execl(program, program, "push", own_pid.c_str(), nullptr);
        _exit(127);
    }
    int status = 0;
    while (waitpid(pusher, &status, 0) < 0) {    // stopped and continued meanwhile
    }
    if (status != 0) std::exit(3);
}

void meet_a_foreign_mover(std::chrono::seconds duration, const char* program) {
    Region hot(kRegionBytes, kLowerNode, Region::Policy::kReset);
    read_until_home(hot, duration);
    const std::string first = json(hot.pages_per_node());
    be_pushed(program);
    const std::string pushed = json(hot.pages_per_node());
    read_until_home(hot, duration);
    std::printf("{\"first\":%s,\"pushed\":%s,\"again\":%s}\n", first.c_str(), pushed.c_str(),
                json(hot.pages_per_node()).c_str());
}

void read_from_afar(std::chrono::seconds duration) {
    const bitmask* cpus = numa_all_cpus_ptr;
    for (unsigned cpu = 0; cpu < cpus->size; ++cpu)
        if (numa_node_of_cpu(static_cast<int>(cpu)) == 1) {
            pin_to_cpu(static_cast<int>(cpu));
            break;
        }
    Region far(kRegionBytes, 0, Region::Policy::kReset);
    read_for(far, duration, [] {});
    std::printf("{\"far\":%s}\n", json(far.pages_per_node()).c_str());
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
    if (what == "push") return count > 2 ? push(std::atoi(arguments[2])) : 2;
    const std::chrono::seconds duration(count > 2 ? std::atoi(arguments[2]) : 5);
    pin_to_cpu(0);
    if (what == "sweep")
        sweep(duration);
    else if (what == "bound")
        bound(duration);
    else if (what == "second-set")
        second_set(duration);
    else if (what == "crowded")
        crowded(duration, count > 3 ? static_cast<size_t>(std::atol(arguments[3])) : 0);
    else if (what == "huge")
        huge(duration);
    else if (what == "descriptors")
        check_descriptors(duration);
    else if (what == "fork")
        share_with_a_child(duration);
    else if (what == "foreign")
        meet_a_foreign_mover(duration, arguments[0]);
    else if (what == "misplaced")
        read_from_afar(duration);
    else if (what == "last-thread")
        leave_main(duration);
    else
        return 2;
    return 0;
}
