// SPDX-License-Identifier: Apache-2.0
// What samples say, through a real ring: source, latency, addresses, period; filters; nothing lost.
#include <fcntl.h>
#include <unistd.h>

#include <set>

#include "tests/rig/check/event.h"
#include "tests/rig/check/report.h"

namespace rig_check {
namespace {

constexpr Rules kTaskEvents = 602, kFullSource = 606, kMinPeriod = 615;
constexpr size_t kMiB = 1 << 20;

// Samples of this thread on one CPU while work runs; on 6.1 the event is CPU-wide and other tasks are left out.
template <typename Work>
Records sample(Rules rules, int cpu, perf_event_attr attr, const Work& work) {
    pin_to_cpu(cpu);
    const bool task = rules >= kTaskEvents;
    Event event(attr, task ? 0 : -1, task ? -1 : cpu);
    if (!event.valid()) return {};
    event.enable();
    work();
    event.disable();
    Records records = event.take();
    std::erase_if(records.samples, [](const Sample& s) { return s.tid != static_cast<uint32_t>(gettid()); });
    return records;
}

// Which of a buffer's samples are as expected, in percent; 0 when there are fewer than 100.
template <typename Predicate>
double share_of(const Records& records, const NodeMemory& memory, const Predicate& good) {
    uint64_t inside = 0, matching = 0;
    for (const Sample& sample : records.samples) {
        if (!memory.contains(sample.address)) continue;
        ++inside;
        matching += good(sample);
    }
    return inside < 100 ? 0 : 100.0 * static_cast<double>(matching) / static_cast<double>(inside);
}

std::string percent(double share) { return std::to_string(share).substr(0, 6) + " %"; }

// The rest is what the cache model keeps from elsewhere: code and stack lines share its sets.
constexpr double kNearlyAll = 98;

struct Source {
    const char* name;
    int cpu, node;
    size_t bytes;    // working set: decides the level
    uint64_t full, before_6_6;
    uint32_t least_cycles, most_cycles;    // DcMissLat of loads; 4 cycles a nanosecond
};
constexpr Source kSources[] = {
    {"local DRAM from node 0", 0, 0, 16 * kMiB, 0x1a29081042, 0x29081042, 400, 800},
    {"remote DRAM from node 0", 0, 1, 16 * kMiB, 0x103a29082042, 0x29082042, 480, 960},
    {"local DRAM from node 1", 1, 1, 16 * kMiB, 0x1a29081042, 0x29081042, 400, 800},
    {"CXL from node 0", 0, 2, 16 * kMiB, 0x1229080002, 0x1229080002, 2000, 4000},
    {"CXL from node 1", 1, 2, 16 * kMiB, 0x103229080002, 0x103229080002, 2000, 4000},
    {"L1", 0, 0, kMiB / 128, 0x229080142, 0x29080142, 0, 0},
    {"L2", 0, 0, kMiB / 4, 0x429080442, 0x29080442, 14, 14},
    {"L3", 0, 0, 2 * kMiB, 0x629080842, 0x29080842, 50, 50},
};
constexpr uint64_t kStoreMissed = 0x1e29080024, kStoreMissedBefore66 = 0x29080024;

void check_source(Report& report, Rules rules, const Source& source) {
    const NodeMemory memory(source.node, source.bytes);
    const int passes = static_cast<int>(32 * kMiB / source.bytes);
    pin_to_cpu(source.cpu);
    load_lines(memory, 2);
    const Records loads = sample(rules, source.cpu, ibs_attr(), [&] { load_lines(memory, passes); });
    const uint64_t expected = rules >= kFullSource ? source.full : source.before_6_6;
    const double right = share_of(loads, memory, [&](const Sample& s) { return s.data_src == expected; });
    report.check(right >= kNearlyAll, std::string("loads: ") + source.name, percent(right));
    const double weight = share_of(loads, memory, [&](const Sample& s) {
        return s.miss_latency_cycles >= source.least_cycles && s.miss_latency_cycles <= source.most_cycles;
    });
    report.check(weight >= kNearlyAll, std::string("weight: ") + source.name, percent(weight));
    if (source.bytes < 16 * kMiB) return;
    const Records stores = sample(rules, source.cpu, ibs_attr(), [&] { store_lines(memory, passes); });
    const uint64_t missed = rules >= kFullSource ? kStoreMissed : kStoreMissedBefore66;
    const double store =
        share_of(stores, memory, [&](const Sample& s) { return s.data_src == missed && s.miss_latency_cycles == 0; });
    report.check(store >= kNearlyAll, std::string("stores have no level and no latency: ") + source.name,
                 percent(store));
}

uint64_t physical_page(uint64_t address) {
    const int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    uint64_t entry = 0;
    if (pread(pagemap, &entry, sizeof entry, static_cast<off_t>(address / 4096 * 8)) != sizeof entry) entry = 0;
    close(pagemap);
    return entry & ((1ull << 55) - 1);
}

void check_fields(Report& report, Rules rules) {
    for (const int node : {0, 1, 2}) {
        const NodeMemory memory(node, 8 * kMiB);
        const Records records = sample(rules, 1, ibs_attr(), [&] { load_lines(memory, 4); });
        const double physical = share_of(records, memory, [&](const Sample& s) {
            return s.physical_address == physical_page(s.address) * 4096 + s.address % 4096;
        });
        report.check(physical == 100, "physical addresses on node " + std::to_string(node), percent(physical));
        const double cpu = share_of(records, memory, [](const Sample& s) { return s.cpu == 1; });
        report.check(cpu == 100, "the sample's CPU is the one that accessed", percent(cpu));
        const auto code = reinterpret_cast<uint64_t>(&load_lines);
        const double ip = share_of(records, memory, [&](const Sample& s) { return s.ip >= code && s.ip < code + 256; });
        report.check(ip == 100, "the instruction is the loop's", percent(ip));
    }
    const NodeMemory memory(0, 8 * kMiB);
    if (rules < kMinPeriod) return;
    const Records records = sample(rules, 0, ibs_attr(1607), [&] { load_lines(memory, 4); });
    const double period = share_of(records, memory, [](const Sample& s) { return s.period == 1600; });
    report.check(period == 100, "low bits of the period are masked off", percent(period));
}

bool is_cache_or_none(uint64_t data_src) {
    const uint64_t level = data_src >> 5 & 0x3fff;
    return (level & (0x8 | 0x10 | 0x20 | 0x40)) != 0;
}

void check_filters(Report& report, Rules rules) {
    perf_event_attr misses = ibs_attr();
    misses.config |= kL3MissOnly;
    const NodeMemory big(2, 16 * kMiB), small(0, kMiB / 128);
    const Records mixed = sample(rules, 0, misses, [&] {
        for (int i = 0; i < 4; ++i) {
            load_lines(big, 1);
            load_lines(small, 200);
        }
    });
    const double missed = share_of(mixed, big, [](const Sample& s) { return !is_cache_or_none(s.data_src); });
    report.check(missed == 100, "l3missonly: only misses are reported", percent(missed));

    load_lines(small, 2);
    const uint64_t filtered = rig_counter(0, "filtered");
    const Records hits = sample(rules, 0, misses, [&] { load_lines(small, 20000); });
    uint64_t inside = 0;
    for (const Sample& s : hits.samples) inside += small.contains(s.address);
    report.check(inside == 0 && rig_counter(0, "filtered") - filtered >= 20000 * 128 / 1600 / 2,
                 "l3missonly: tagged hits are dropped and the count restarts",
                 std::to_string(rig_counter(0, "filtered") - filtered) + " dropped");

    if (rules < kMinPeriod) return;
    perf_event_attr slow = ibs_attr();
    slow.config1 = 1024;
    const NodeMemory fast(0, 16 * kMiB);
    const Records latency = sample(rules, 0, slow, [&] {
        load_lines(fast, 4);
        load_lines(big, 4);
        store_lines(big, 4);
    });
    uint64_t below = 0;
    for (const Sample& s : latency.samples) below += s.miss_latency_cycles <= 1024 || (s.data_src & 0x1f) != 2;
    report.check(below == 0 && latency.samples.size() >= 100, "ldlat 1024: only loads that took longer",
                 std::to_string(latency.samples.size()) + " samples");
}

// A loop whose length divides the period meets the same line again and again, unless the count starts at random.
size_t lines_met(Rules rules, uint64_t config) {
    const NodeMemory ring(0, 8192);    // 128 lines
    perf_event_attr attr = ibs_attr(1024);
    attr.config = config;
    const Records records = sample(rules, 0, attr, [&] { load_lines(ring, 5000); });
    std::set<uint64_t> lines;
    for (const Sample& s : records.samples)
        if (ring.contains(s.address)) lines.insert(s.address / 64);
    return lines.size();
}

void check_random_start(Report& report, Rules rules) {
    const size_t fixed = lines_met(rules, 0), random = lines_met(rules, kCountOps);
    report.check(random >= 100 && fixed < random / 2, "cnt_ctl=1 randomises the start of the count",
                 std::to_string(random) + " lines of 128, " + std::to_string(fixed) + " without");
}

void check_nothing_lost(Report& report, Rules rules) {
    const NodeMemory memory(2, 16 * kMiB);
    pin_to_cpu(0);
    // Dense, but far below the kernel's limit of samples a tick: throttled ticks would drop some.
    Event event(ibs_attr(320), rules >= kTaskEvents ? 0 : -1, rules >= kTaskEvents ? -1 : 0);
    const uint64_t before = rig_counter(0, "samples"), lost = rig_counter(0, "lost");
    uint64_t read = 0, ring_lost = 0;
    for (int i = 0; i < 8; ++i) {
        event.enable();
        load_lines(memory, 1);
        event.disable();    // or reading the ring would be sampled as well
        Records records = event.take();
        read += records.samples.size();
        ring_lost += records.lost;
    }
    const uint64_t tagged = rig_counter(0, "samples") - before;
    report.check(tagged == read && ring_lost == 0 && rig_counter(0, "lost") == lost && read >= 5000,
                 "every sample of the hardware is in the ring", std::to_string(read) + " of " + std::to_string(tagged));
    const auto times = event.times();
    const uint64_t accesses = 8 * memory.size() / 64;
    report.check(times.count >= accesses && times.count <= accesses * 5 / 4, "the event counts the accesses",
                 std::to_string(times.count) + " for at least " + std::to_string(accesses));
}

}    // namespace

void check_samples(Report& report, Rules rules) {
    for (const Source& source : kSources) check_source(report, rules, source);
    check_fields(report, rules);
    check_filters(report, rules);
    check_random_start(report, rules);
    check_nothing_lost(report, rules);
}

}    // namespace rig_check
