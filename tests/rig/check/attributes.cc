// SPDX-License-Identifier: Apache-2.0
// What perf_event_open and the PERIOD ioctl accept, by kernel version; sysfs files; what an unprivileged user may do.
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>

#include "tests/rig/check/event.h"
#include "tests/rig/check/report.h"

namespace rig_check {
namespace {

constexpr Rules kTaskEvents = 602, kGroupCheck = 606, kSwfilt = 614, kMinPeriod = 615;
using Change = std::function<void(perf_event_attr&)>;

struct Opener {
    Report& report;
    Rules rules;

    // 6.1 knows CPU-wide events only: there the same attributes are tried CPU-wide.
    void expect(const char* what, int error, const Change& change) const {
        perf_event_attr attr = ibs_attr();
        change(attr);
        const bool task = rules >= kTaskEvents;
        const int seen = open_error(attr, task ? 0 : -1, task ? -1 : 0);
        report.check(seen == error, what, seen == 0 ? "opens" : strerrorname_np(seen));
    }
};

void check_periods(const Opener& open) {
    const bool masked = open.rules >= kMinPeriod;
    open.expect("period 0 without a count in config", EINVAL, [](auto& a) { a.sample_period = 0; });
    open.expect("count in config alone", 0, [](auto& a) { a.sample_period = 0, a.config |= 1000; });
    open.expect("period and a count in config", EINVAL, [](auto& a) { a.config |= 1000; });
    open.expect("period with low bits", masked ? 0 : EINVAL, [](auto& a) { a.sample_period = 10007; });
    open.expect("period 16", masked ? EINVAL : 0, [](auto& a) { a.sample_period = 16; });
    open.expect("period 128, a multiple of 16", masked ? EINVAL : 0, [](auto& a) { a.sample_period = 128; });
    open.expect("period 144", 0, [](auto& a) { a.sample_period = 144; });
    open.expect("period beyond the hardware's count", 0, [](auto& a) { a.sample_period = 1ull << 32; });
    open.expect("frequency 1000", 0, [](auto& a) { a.freq = 1, a.sample_freq = 1000; });
    open.expect("frequency above the kernel's limit", EINVAL, [](auto& a) { a.freq = 1, a.sample_freq = 10'000'000; });
}

void check_filters(const Opener& open) {
    const int with_swfilt = open.rules >= kSwfilt ? 0 : EINVAL;
    open.expect("exclude_kernel without swfilt", EINVAL, [](auto& a) { a.exclude_kernel = 1; });
    open.expect("exclude_user without swfilt", EINVAL, [](auto& a) { a.exclude_user = 1; });
    open.expect("exclude_hv without swfilt", EINVAL, [](auto& a) { a.exclude_hv = 1; });
    open.expect("exclude_kernel with swfilt", with_swfilt,
                [](auto& a) { a.exclude_kernel = 1, a.config2 = kSwFilter; });
    open.expect("exclude_idle", EINVAL, [](auto& a) { a.exclude_idle = 1, a.config2 = kSwFilter; });
    open.expect("exclude_host", EINVAL, [](auto& a) { a.exclude_host = 1, a.config2 = kSwFilter; });
    open.expect("exclude_guest", EINVAL, [](auto& a) { a.exclude_guest = 1, a.config2 = kSwFilter; });
    open.expect("l3missonly", 0, [](auto& a) { a.config |= kL3MissOnly; });
    open.expect("a config bit without meaning", EINVAL, [](auto& a) { a.config |= 1ull << 28; });
    open.expect("WEIGHT and WEIGHT_STRUCT", EINVAL, [](auto& a) { a.sample_type |= PERF_SAMPLE_WEIGHT; });
    open.expect("no such PMU", ENOENT, [](auto& a) { a.type = 9999; });
    if (open.rules >= kSwfilt)
        open.expect("branch stack", EOPNOTSUPP, [](auto& a) {
            a.sample_type |= PERF_SAMPLE_BRANCH_STACK;
            a.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER;
        });
}

void check_latency_filter(const Opener& open) {
    const int outside = open.rules >= kMinPeriod ? EINVAL : 0;    // before 6.15 nobody looks at config1
    open.expect("ldlat 127", outside, [](auto& a) { a.config1 = 127; });
    open.expect("ldlat 128", 0, [](auto& a) { a.config1 = 128; });
    open.expect("ldlat 2048", 0, [](auto& a) { a.config1 = 2048; });
    open.expect("ldlat 2049", outside, [](auto& a) { a.config1 = 2049; });
}

void check_attachment(Report& report, Rules rules) {
    const perf_event_attr attr = ibs_attr();
    const int task = open_error(attr, 0, -1);
    report.check(task == (rules >= kTaskEvents ? 0 : EINVAL), "event of a task",
                 task ? strerrorname_np(task) : "opens");
    const int wide = open_error(attr, -1, 0);
    report.check(wide == 0, "event of a CPU", wide ? strerrorname_np(wide) : "opens");

    Event leader(attr, -1, 0);
    const int second = open_error(attr, -1, 0, leader.descriptor());
    report.check(second == (rules >= kGroupCheck ? EINVAL : 0), "two IBS events in a group",
                 second ? strerrorname_np(second) : "opens");
    if (rules < kTaskEvents) return;
    perf_event_attr inherited = attr;
    inherited.inherit = 1;
    report.check(open_error(inherited, 0, -1) == 0, "inherited event on any CPU opens");
    report.check(!Event(inherited, 0, -1).valid(), "but its ring cannot be mapped");
    report.check(Event(inherited, 0, 0).valid(), "inherited event of one CPU has a ring");
}

void check_period_ioctl(Report& report, Rules rules) {
    const Event event(ibs_attr(), -1, 0);
    const auto set = [&](uint64_t period) {
        return ioctl(event.descriptor(), PERF_EVENT_IOC_PERIOD, &period) == 0 ? 0 : errno;
    };
    const int refused = rules >= kMinPeriod ? EINVAL : 0;
    report.check(set(10007) == refused, "PERIOD ioctl with low bits");
    report.check(set(128) == refused, "PERIOD ioctl with 128");
    report.check(set(160) == 0, "PERIOD ioctl with 160");
}

void check_sysfs(Report& report, Rules rules) {
    const auto shows = [&](const char* file, bool expected, const char* content) {
        const std::string text = read_file(std::string("/sys/bus/event_source/devices/ibs_op/") + file);
        report.check(text == (expected ? std::string(content) + "\n" : ""), std::string("sysfs ") + file);
    };
    shows("format/cnt_ctl", true, "config:19");
    shows("format/l3missonly", true, "config:16");
    shows("format/swfilt", rules >= kSwfilt, "config2:0");
    shows("format/ldlat", rules >= kMinPeriod, "config1:0-11");
    shows("caps/zen4_ibs_extensions", true, "1");
    shows("caps/ldlat", rules >= kMinPeriod, "1");
    shows("caps/dtlb_pgsize", rules >= kMinPeriod, "1");
}

// Opens as an unprivileged user, in a child; returns the errno.
int unprivileged_open_error(const perf_event_attr& attr, pid_t pid, int cpu) {
    ibs_type();    // read before the child loses its rights
    const pid_t child = fork();
    if (child == 0) {
        if (setgid(1234) != 0 || setuid(1234) != 0) _exit(255);
        _exit(open_error(attr, pid, cpu));
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

void check_unprivileged(Report& report, Rules rules) {
    if (rules < kTaskEvents) return;
    perf_event_attr user = ibs_attr();
    user.sample_type &= ~static_cast<uint64_t>(PERF_SAMPLE_PHYS_ADDR);
    perf_event_attr kernel = user, physical = ibs_attr();
    user.exclude_kernel = physical.exclude_kernel = 1;
    user.config2 = physical.config2 = kSwFilter;

    const int own = unprivileged_open_error(user, 0, -1);
    report.check(own == (rules >= kSwfilt ? 0 : EINVAL), "user: own task, exclude_kernel and swfilt",
                 own ? strerrorname_np(own) : "opens");
    report.check(unprivileged_open_error(kernel, 0, -1) == EACCES, "user: own task with the kernel is EACCES");
    if (rules < kSwfilt) return;
    report.check(unprivileged_open_error(user, -1, 0) == EACCES, "user: CPU-wide is EACCES");
    report.check(unprivileged_open_error(physical, 0, -1) == EACCES, "user: physical addresses are EACCES");
}

}    // namespace

void check_attributes(Report& report, Rules rules) {
    const Opener open{report, rules};
    check_periods(open);
    check_filters(open);
    check_latency_filter(open);
    check_attachment(report, rules);
    check_period_ioctl(report, rules);
    check_sysfs(report, rules);
    check_unprivileged(report, rules);
}

}    // namespace rig_check
