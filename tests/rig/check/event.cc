// SPDX-License-Identifier: Apache-2.0
#include "tests/rig/check/event.h"

#include <numaif.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

namespace rig_check {
namespace {

constexpr size_t kPageBytes = 4096, kDataPages = 512, kLineBytes = 64;

int perf_event_open(const perf_event_attr& attr, pid_t pid, int cpu, int group) {
    perf_event_attr copy = attr;
    return static_cast<int>(syscall(SYS_perf_event_open, &copy, pid, cpu, group, PERF_FLAG_FD_CLOEXEC));
}

}    // namespace

int ibs_type() {
    static const int type = std::atoi(read_file("/sys/bus/event_source/devices/ibs_op/type").c_str());
    return type;
}

perf_event_attr ibs_attr(uint64_t period) {
    perf_event_attr attr{};
    attr.size = sizeof attr;
    attr.type = static_cast<uint32_t>(ibs_type());
    attr.config = kCountOps;
    attr.sample_period = period;
    attr.sample_type = kSampleFields;
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    attr.disabled = 1;
    return attr;
}

int open_error(const perf_event_attr& attr, pid_t pid, int cpu, int group) {
    const int descriptor = perf_event_open(attr, pid, cpu, group);
    if (descriptor < 0) return errno;
    close(descriptor);
    return 0;
}

Event::Event(const perf_event_attr& attr, pid_t pid, int cpu) : descriptor_(perf_event_open(attr, pid, cpu, -1)) {
    if (descriptor_ < 0) return;
    void* mapping = mmap(nullptr, (1 + kDataPages) * kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    if (mapping != MAP_FAILED) ring_ = static_cast<perf_event_mmap_page*>(mapping);
}

Event::~Event() {
    if (ring_ != nullptr) munmap(ring_, (1 + kDataPages) * kPageBytes);
    if (descriptor_ >= 0) close(descriptor_);
}

void Event::enable() const { ioctl(descriptor_, PERF_EVENT_IOC_ENABLE, 0); }
void Event::disable() const { ioctl(descriptor_, PERF_EVENT_IOC_DISABLE, 0); }

Event::Times Event::times() const {
    Times times{};
    if (read(descriptor_, &times, sizeof times) != sizeof times) times = {};
    return times;
}

Records Event::take() {
    Records records;
    const auto* data = reinterpret_cast<const char*>(ring_) + kPageBytes;
    const auto copy = [&](uint64_t from, void* to, size_t bytes) {
        for (size_t i = 0; i < bytes; ++i) static_cast<char*>(to)[i] = data[(from + i) % (kDataPages * kPageBytes)];
    };
    const uint64_t head = __atomic_load_n(&ring_->data_head, __ATOMIC_ACQUIRE);
    uint64_t tail = ring_->data_tail;
    while (tail < head) {
        perf_event_header header;
        copy(tail, &header, sizeof header);
        if (header.type == PERF_RECORD_SAMPLE && header.size >= sizeof header + sizeof(Sample)) {
            copy(tail + sizeof header, &records.samples.emplace_back(), sizeof(Sample));
        } else if (header.type == PERF_RECORD_LOST) {
            uint64_t body[2];
            copy(tail + sizeof header, body, sizeof body);
            records.lost += body[1];
        }
        if (header.type == PERF_RECORD_THROTTLE) ++records.throttled;
        if (header.type == PERF_RECORD_UNTHROTTLE) ++records.unthrottled;
        tail += header.size;
    }
    __atomic_store_n(&ring_->data_tail, tail, __ATOMIC_RELEASE);
    return records;
}

void pin_to_cpu(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<size_t>(cpu), &set);
    sched_setaffinity(0, sizeof set, &set);
}

NodeMemory::NodeMemory(int node, size_t bytes) : base_(nullptr), bytes_(bytes) {
    void* mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) std::abort();
    base_ = static_cast<char*>(mapping);
    madvise(base_, bytes, MADV_NOHUGEPAGE);
    const unsigned long mask = 1ul << node;
    if (mbind(base_, bytes, MPOL_BIND, &mask, sizeof mask * 8, 0) != 0) std::abort();
    std::memset(base_, 1, bytes);
}

NodeMemory::~NodeMemory() { munmap(base_, bytes_); }

void load_lines(const NodeMemory& memory, int passes) {
    for (int pass = 0; pass < passes; ++pass)
        for (size_t offset = 0; offset < memory.size(); offset += kLineBytes) load_once(memory.begin() + offset);
}

void store_lines(const NodeMemory& memory, int passes) {
    for (int pass = 0; pass < passes; ++pass)
        for (size_t offset = 0; offset < memory.size(); offset += kLineBytes) store_once(memory.begin() + offset);
}

std::string read_file(const std::string& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

void write_file(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

uint64_t rig_counter(int cpu, const std::string& name) {
    std::istringstream lines(read_file("/proc/rig_counters"));
    const std::string start = "cpu " + std::to_string(cpu) + " ";
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with(start)) continue;
        std::istringstream words(line);
        uint64_t value = 0;
        for (std::string word; words >> word >> value;)
            if (word == name) return value;
    }
    return 0;
}

}    // namespace rig_check
