// SPDX-License-Identifier: Apache-2.0
#include "preload/machine_thread.h"

#include "runtime/engine/shared.h"
#include "runtime/kernel/process.h"

namespace pghot {
namespace {

// One at a time: load and exit of the library. Static, since a late thread may still use it.
struct Job {
    void (*work)(void*) = nullptr;
    void* argument = nullptr;
    Signal done;
};
constinit Job job;

void* run(void*) {
    if (sys::close_all_and_unshare_descriptors() == 0) {
        take_standard_descriptors();
        job.work(job.argument);
    }
    job.done.raise();
    return nullptr;
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
    return true;
}

}    // namespace pghot
