// SPDX-License-Identifier: Apache-2.0
#include "preload/machine_thread.h"

#include <unistd.h>

#include "runtime/engine/shared.h"
#include "runtime/kernel/process.h"

namespace pghot {
namespace {

// One at a time: load and exit of the library. Static, since a late thread may still use it.
struct Job {
    void (*work)(void*) = nullptr;
    void* argument = nullptr;
    int tid = 0;    // by the thread, before `done`
    Signal done;
};
constinit Job job;

void* run(void*) {
    job.tid = sys::thread_id();
    if (sys::close_all_and_unshare_descriptors() == 0) {
        take_standard_descriptors();
        job.work(job.argument);
    }
    job.done.raise();
    return nullptr;
}

// A program with one thread may do at once what the kernel forbids one with two (unshare, setns).
void wait_until_gone(int tid, TimeNs limit) {
    while (sys::thread_exists(tid) && sys::now() < limit) usleep(20);
}

}    // namespace

bool on_machine_thread(void (*work)(void*), void* argument) {
    job.work = work;
    job.argument = argument;
    const uint32_t seen = job.done.value();
    if (start_detached_thread(ThreadRuns::kOwnCode, run, nullptr) != 0) return false;
    const TimeNs limit = sys::now() + 2 * kNsPerSecond;
    while (job.done.value() == seen) {
        const TimeNs now = sys::now();
        if (now >= limit) return false;
        job.done.wait(seen, static_cast<uint64_t>(limit - now));
    }
    wait_until_gone(job.tid, limit);
    return true;
}

}    // namespace pghot
