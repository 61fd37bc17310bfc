// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/perf_event.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rig_check {

inline constexpr uint64_t kCountOps = 1ull << 19, kL3MissOnly = 1ull << 16, kSwFilter = 1;    // config, config2
inline constexpr uint64_t kSampleFields = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |
                                          PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_WEIGHT_STRUCT |
                                          PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_PHYS_ADDR;

// A sample with kSampleFields, in the kernel's order.
struct Sample {
    uint64_t ip;
    uint32_t pid, tid;
    uint64_t time;
    uint64_t address;
    uint32_t cpu, reserved;
    uint64_t period;
    uint32_t miss_latency_cycles;
    uint16_t tag_to_retire_cycles, weight3;
    uint64_t data_src;
    uint64_t physical_address;
};
static_assert(sizeof(Sample) == 72);

struct Records {
    std::vector<Sample> samples;
    uint64_t lost = 0, throttled = 0, unthrottled = 0;
};

// perf_event_attr for ibs_op: period 1600, ops counted, kSampleFields.
perf_event_attr ibs_attr(uint64_t period = 1600);
int ibs_type();

// errno of perf_event_open, 0 when it opens (the descriptor is closed again).
int open_error(const perf_event_attr& attr, pid_t pid, int cpu, int group = -1);

// One event with a mapped ring of 512 data pages. Owner: one thread.
class Event {
public:
    Event(const perf_event_attr& attr, pid_t pid, int cpu);
    ~Event();
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;

    bool valid() const { return ring_ != nullptr; }
    int descriptor() const { return descriptor_; }
    void enable() const;
    void disable() const;
    Records take();

    struct Times {
        uint64_t count, enabled_ns, running_ns;
    };
    Times times() const;

private:
    int descriptor_ = -1;
    perf_event_mmap_page* ring_ = nullptr;
};

void pin_to_cpu(int cpu);

// Pages bound to a node and touched; unmapped at the end.
class NodeMemory {
public:
    NodeMemory(int node, size_t bytes);
    ~NodeMemory();
    NodeMemory(const NodeMemory&) = delete;
    NodeMemory& operator=(const NodeMemory&) = delete;

    char* begin() const { return base_; }
    size_t size() const { return bytes_; }
    bool contains(uint64_t address) const { return address - reinterpret_cast<uint64_t>(base_) < bytes_; }

private:
    char* base_;
    size_t bytes_;
};

// One access of exactly one instruction at the address.
inline void load_once(const char* address) { asm volatile("movzbl (%0), %%eax" : : "r"(address) : "eax"); }
inline void store_once(char* address) { asm volatile("movb $1, (%0)" : : "r"(address) : "memory"); }

// Walks the memory line by line, that many passes.
void load_lines(const NodeMemory& memory, int passes);
void store_lines(const NodeMemory& memory, int passes);

std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& text);
// Value of a counter of /proc/rig_counters for one CPU.
uint64_t rig_counter(int cpu, const std::string& name);

}    // namespace rig_check
