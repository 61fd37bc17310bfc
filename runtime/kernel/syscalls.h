// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "runtime/base/units.h"

struct perf_event_attr;

// The system calls that libc has no function for, each as a thin function that answers -errno instead of setting errno.
// They run on any thread and keep nothing. libnuma is not used here: see runtime/decisions/2026-11-30-no-libnuma.md.
namespace pghot::sys {

// move_pages(2) of the own process. `targets` null asks where the pages are. Statuses are the kernel's: node or -errno.
// Answer: 0, the count of pages left behind, or -errno. Costs of a moving call: facts in runtime/migrate/README.md.
long move_pages(std::span<void* const> pages, const int* targets, int* statuses);

// Whether move_pages is there for this process (containers' profiles refuse it): 0 or -errno. Asks about one page.
long try_move_pages();

struct MemoryPolicy {
    int mode = 0;          // MPOL_* without the mode flags
    uint64_t nodes = 0;    // bit per node below 64
    bool is_default() const;
    bool is_bind() const;
};
// Policy of the mapping at `address`; what the mapping does not say is MPOL_DEFAULT. 0 or -errno.
long policy_of_address(uintptr_t address, MemoryPolicy& out);
// Policy of the calling thread. 0 or -errno.
long policy_of_thread(MemoryPolicy& out);
// Nodes that the cpuset allows this process. 0 or -errno.
long allowed_nodes(uint64_t& out);

int perf_event_open(const perf_event_attr& attributes, int tid, int cpu, unsigned long flags);
int close_all_and_unshare_descriptors();
int memfd(const char* name);
int thread_id();
bool thread_exists(int tid);    // in this process
int process_id();               // the kernel's word, right in a vfork child too

// Sleeps while `word` holds `seen`, at most `timeout_ns`; wakes on futex_wake, which wakes all. Spurious wake-ups are
// possible.
void futex_wait(const uint32_t* word, uint32_t seen, uint64_t timeout_ns);
void futex_wake(const uint32_t* word);

TimeNs now();                 // CLOCK_MONOTONIC
uint64_t thread_cpu_ns();     // CPU time of the calling thread
uint64_t process_cpu_ns();    // of all threads, ours too
uint64_t peak_rss_bytes();    // of the process, without a descriptor
// The lower of RLIMIT_AS and RLIMIT_DATA: every mapping of ours counts against both. UINT64_MAX: none is set.
uint64_t mapping_limit_bytes();

}    // namespace pghot::sys
