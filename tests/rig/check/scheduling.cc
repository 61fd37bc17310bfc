// SPDX-License-Identifier: Apache-2.0
// Throttling, two events on one counter, and whose samples are whose when tasks share a CPU.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "tests/rig/check/event.h"
#include "tests/rig/check/report.h"

namespace rig_check {
namespace {

constexpr Rules kTaskEvents = 602;
constexpr size_t kMiB = 1 << 20;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void load_for(const NodeMemory& memory, double seconds) {
    for (const auto start = Clock::now(); seconds_since(start) < seconds;) load_lines(memory, 1);
}

void check_throttle(Report& report) {
    const std::string limit = "/proc/sys/kernel/perf_event_max_sample_rate";
    const std::string before = read_file(limit);
    write_file(limit, "5000");    // 20 a tick of 4 ms
    pin_to_cpu(0);
    const NodeMemory memory(0, kMiB / 4);
    Event event(ibs_attr(160), -1, 0);
    event.enable();
    const auto start = Clock::now();
    load_for(memory, 1);
    event.disable();
    const double seconds = seconds_since(start);
    const Records records = event.take();
    write_file(limit, before);
    const double rate = static_cast<double>(records.samples.size()) / seconds;
    report.check(records.throttled >= 10 && records.unthrottled >= 10, "too many samples a tick are throttled",
                 std::to_string(records.throttled) + " times");
    // A throttled tick has one sample more than allowed; ticks delayed by the host allow as many again.
    report.check(rate > 500 && rate < 2 * 5000, "and the rate stays near the limit of 5000 a second",
                 std::to_string(static_cast<int>(rate)) + " a second");
}

void check_multiplexing(Report& report) {
    pin_to_cpu(0);
    const NodeMemory memory(0, kMiB / 4);
    Event first(ibs_attr(), -1, 0), second(ibs_attr(), -1, 0);
    first.enable();
    second.enable();
    load_for(memory, 1);
    first.disable();
    second.disable();
    for (const Event* event : {&first, &second}) {
        const auto times = event->times();
        report.check(
            times.running_ns > times.enabled_ns / 10 && times.running_ns < times.enabled_ns * 9 / 10,
            "two events share the CPU's one counter by turns",
            std::to_string(times.running_ns / 1000000) + " of " + std::to_string(times.enabled_ns / 1000000) + " ms");
    }
    report.check(first.take().samples.size() >= 100 && second.take().samples.size() >= 100, "and both get samples");
}

// Two processes share CPU 0, each loading its own memory; both run until killed.
struct Pair {
    NodeMemory memory[2]{{0, kMiB / 4}, {0, kMiB / 4}};
    pid_t pids[2]{};

    Pair() {
        for (int i = 0; i < 2; ++i) {
            pids[i] = fork();
            if (pids[i] != 0) continue;
            pin_to_cpu(0);
            for (;;) load_for(memory[i], 1);
        }
    }
    ~Pair() {
        for (const pid_t pid : pids) {
            kill(pid, SIGKILL);
            waitpid(pid, nullptr, 0);
        }
    }
    Pair(const Pair&) = delete;
    Pair& operator=(const Pair&) = delete;

    // The index of the process whose memory the address is in; both have the parent's layout. -1: elsewhere.
    int owner_of(uint64_t address) const {
        return memory[0].contains(address) ? 0 : memory[1].contains(address) ? 1 : -1;
    }
};

void check_owner(Report& report, const char* what, const Pair& pair, const Records& records, int only) {
    uint64_t right[2]{}, wrong = 0;
    for (const Sample& sample : records.samples) {
        const int owner = pair.owner_of(sample.address);
        if (owner < 0) continue;
        if (sample.pid == static_cast<uint32_t>(pair.pids[owner]) && (only < 0 || owner == only))
            ++right[owner];
        else
            ++wrong;
    }
    const bool seen = only >= 0 ? right[only] >= 100 : right[0] >= 100 && right[1] >= 100;
    report.check(
        wrong == 0 && seen, what,
        std::to_string(right[0]) + " and " + std::to_string(right[1]) + " right, " + std::to_string(wrong) + " wrong");
}

void check_tasks(Report& report, Rules rules) {
    const Pair pair;
    pin_to_cpu(1);
    Event wide(ibs_attr(), -1, 0);
    wide.enable();
    sleep(1);
    wide.disable();
    check_owner(report, "a CPU's samples carry the task that accessed", pair, wide.take(), -1);
    if (rules < kTaskEvents) return;
    Event own(ibs_attr(), pair.pids[0], -1);
    own.enable();
    sleep(1);
    own.disable();
    check_owner(report, "a task's event has that task's samples only", pair, own.take(), 0);
}

}    // namespace

void check_scheduling(Report& report, Rules rules) {
    check_throttle(report);
    check_multiplexing(report);
    check_tasks(report, rules);
}

}    // namespace rig_check
