// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel/thread.h"

#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>

#include "runtime/base/units.h"
#include "runtime/kernel/answer.h"

namespace pghot {
namespace {

// Our deepest frame is the read of /proc/self/maps (16 KiB).
constexpr size_t kOwnStackBytes = 256 * 1024;
// The usual stack of a program's thread. A larger default (ulimit -s) is meant for threads that need it, and mlockall
// would lock ours.
constexpr size_t kLargestStackBytes = 8 * kMiB;

// Written by note_static_tls before the first thread of ours, constant afterwards.
constinit size_t static_tls_bytes = 0;

class Attributes {
public:
    Attributes() { pthread_attr_init(&value); }
    ~Attributes() { pthread_attr_destroy(&value); }
    Attributes(const Attributes&) = delete;
    Attributes& operator=(const Attributes&) = delete;
    pthread_attr_t value;
};

int add_tls_of(dl_phdr_info* object, size_t, void* sum) {
    for (unsigned i = 0; i < object->dlpi_phnum; ++i) {
        const ElfW(Phdr)& header = object->dlpi_phdr[i];
        if (header.p_type == PT_TLS) *static_cast<size_t*>(sum) += header.p_memsz + header.p_align;
    }
    return 0;
}

// `attributes` as they were initialised: they hold the size that the program's own threads get.
size_t stack_bytes(ThreadRuns runs, const pthread_attr_t& attributes) {
    size_t usual = 0;
    pthread_attr_getstacksize(&attributes, &usual);
    const bool large = runs == ThreadRuns::kExitHandlers;
    const size_t wanted = large ? std::clamp(usual, kOwnStackBytes, kLargestStackBytes) : kOwnStackBytes;
    return page_of(wanted + static_tls_bytes + kPageBytes - 1);
}

int start(ThreadRuns runs, int detach_state, void* (*body)(void*), void* argument, pthread_t& thread) {
    Attributes attributes;
    sigset_t all;
    sigfillset(&all);
    // The C library keeps its own two signals unblocked, without which setuid in a threaded program would hang.
    pthread_attr_setsigmask_np(&attributes.value, &all);
    pthread_attr_setdetachstate(&attributes.value, detach_state);
    pthread_attr_setstacksize(&attributes.value, stack_bytes(runs, attributes.value));
    const int refused = pthread_create(&thread, &attributes.value, body, argument);
    if (refused != 0) refused_calls.note(KernelCall::pthread_create, refused);
    return refused;
}

}    // namespace

ThreadCpus current_cpu_mask() {
    ThreadCpus mask;
    // Fails above 1024 CPUs: keep what we inherit.
    mask.known = answer(KernelCall::sched_getaffinity, sched_getaffinity(0, sizeof mask.set, &mask.set)) == 0;
    return mask;
}

bool set_cpu_mask(const ThreadCpus& mask) {
    return !mask.known || answer(KernelCall::sched_setaffinity, sched_setaffinity(0, sizeof mask.set, &mask.set)) == 0;
}

void set_thread_name(const char* name) { answer(KernelCall::prctl, prctl(PR_SET_NAME, name, 0, 0, 0)); }

void note_static_tls() {
    size_t sum = 0;
    dl_iterate_phdr(add_tls_of, &sum);
    static_tls_bytes = sum;
}

int start_detached_thread(ThreadRuns runs, void* (*body)(void*), void* argument) {
    pthread_t thread;
    return start(runs, PTHREAD_CREATE_DETACHED, body, argument, thread);
}

int start_joinable_thread(ThreadRuns runs, void* (*body)(void*), void* argument, pthread_t& thread) {
    return start(runs, PTHREAD_CREATE_JOINABLE, body, argument, thread);
}

}    // namespace pghot
