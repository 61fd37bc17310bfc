// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel/syscalls.h"

#include <linux/futex.h>
#include <linux/mempolicy.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <initializer_list>

#include "runtime/kernel/answer.h"

// CLOSE_RANGE_UNSHARE: linux/close_range.h is newer than some build hosts' headers; the value is ABI since 5.9.
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#endif

namespace pghot::sys {
namespace {

// The kernel refuses a mask shorter than its own MAX_NUMNODES (1024 on distribution kernels); longer is fine.
constexpr unsigned kKernelNodes = 4096;
struct NodeMask {
    unsigned long words[kKernelNodes / 64] = {};
};

long get_mempolicy(int* mode, NodeMask* mask, uintptr_t address, unsigned long flags) {
    return answer(KernelCall::get_mempolicy, syscall(SYS_get_mempolicy, mode, mask->words,
                                                     static_cast<unsigned long>(kKernelNodes), address, flags));
}

constexpr int kModeFlags = MPOL_F_STATIC_NODES | MPOL_F_RELATIVE_NODES | (1 << 13);    // 13: MPOL_F_NUMA_BALANCING

long read_policy(MemoryPolicy& out, uintptr_t address, unsigned long flags) {
    NodeMask mask;
    const long result = get_mempolicy(&out.mode, &mask, address, flags);
    out.mode &= ~kModeFlags;
    out.nodes = mask.words[0];
    return result;
}

uint64_t to_ns(const timespec& time) {
    return static_cast<uint64_t>(time.tv_sec) * kNsPerSecond + static_cast<uint64_t>(time.tv_nsec);
}

uint64_t read_clock(clockid_t clock) {
    timespec time{};
    answer(KernelCall::clock_gettime, clock_gettime(clock, &time));
    return to_ns(time);
}

}    // namespace

bool MemoryPolicy::is_default() const { return mode == MPOL_DEFAULT; }
bool MemoryPolicy::is_bind() const { return mode == MPOL_BIND; }

long move_pages(std::span<void* const> pages, const int* targets, int* statuses) {
    return answer(KernelCall::move_pages,
                  syscall(SYS_move_pages, 0, pages.size(), pages.data(), targets, statuses, MPOL_MF_MOVE));
}

long try_move_pages() {
    int here = 0;
    int status = 0;
    void* const page = &here;
    const long result = move_pages({&page, 1}, nullptr, &status);
    return result < 0 ? result : 0;
}

long policy_of_address(uintptr_t address, MemoryPolicy& out) { return read_policy(out, address, MPOL_F_ADDR); }

long policy_of_thread(MemoryPolicy& out) { return read_policy(out, 0, 0); }

long allowed_nodes(uint64_t& out) {
    NodeMask mask;
    const long result = get_mempolicy(nullptr, &mask, 0, MPOL_F_MEMS_ALLOWED);
    out = mask.words[0];
    return result;
}

int perf_event_open(const perf_event_attr& attributes, int tid, int cpu, unsigned long flags) {
    const long result = syscall(SYS_perf_event_open, &attributes, tid, cpu, -1, flags);
    if (result == -1 && errno == ESRCH) return -ESRCH;    // the thread ended meanwhile
    return static_cast<int>(answer(KernelCall::perf_event_open, result));
}

int close_all_and_unshare_descriptors() {
    return static_cast<int>(answer(KernelCall::close_range, syscall(SYS_close_range, 0U, ~0U, CLOSE_RANGE_UNSHARE)));
}

int memfd(const char* name) {
    return static_cast<int>(answer(KernelCall::memfd_create, syscall(SYS_memfd_create, name, MFD_CLOEXEC)));
}

int thread_id() { return static_cast<int>(syscall(SYS_gettid)); }
bool thread_exists(int tid) { return syscall(SYS_tgkill, process_id(), tid, 0) == 0; }
int process_id() { return static_cast<int>(syscall(SYS_getpid)); }

void futex_wait(const uint32_t* word, uint32_t seen, uint64_t timeout_ns) {
    const timespec timeout{static_cast<time_t>(timeout_ns / kNsPerSecond),
                           static_cast<long>(timeout_ns % kNsPerSecond)};
    const long result = syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, &timeout, nullptr, 0);
    const bool over = result == 0 || errno == EAGAIN || errno == ETIMEDOUT || errno == EINTR;
    if (!over) answer(KernelCall::futex, result);
}

void futex_wake(const uint32_t* word) {
    answer(KernelCall::futex, syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0));
}

TimeNs now() { return TimeNs{read_clock(CLOCK_MONOTONIC)}; }
uint64_t thread_cpu_ns() { return read_clock(CLOCK_THREAD_CPUTIME_ID); }
uint64_t process_cpu_ns() { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }

uint64_t peak_rss_bytes() {
    rusage usage{};
    answer(KernelCall::getrusage, getrusage(RUSAGE_SELF, &usage));
    return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

uint64_t mapping_limit_bytes() {
    uint64_t lowest = UINT64_MAX;
    for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
        rlimit limit{};
        const long refused = answer(KernelCall::getrlimit, getrlimit(resource, &limit));
        if (refused == 0 && limit.rlim_cur != RLIM_INFINITY) lowest = std::min<uint64_t>(lowest, limit.rlim_cur);
    }
    return lowest;
}

}    // namespace pghot::sys
