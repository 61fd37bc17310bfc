// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel/thread.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

namespace pghot {
namespace {

// Our deepest frame is the read of /proc/self/maps (16 KiB); the C library adds the program's static TLS by itself.
constexpr size_t kStackBytes = 256 * 1024;

class Attributes {
public:
    Attributes() { pthread_attr_init(&value); }
    ~Attributes() { pthread_attr_destroy(&value); }
    Attributes(const Attributes&) = delete;
    Attributes& operator=(const Attributes&) = delete;
    pthread_attr_t value;
};

}    // namespace

ThreadCpus current_cpu_mask() {
    ThreadCpus mask;
    mask.known =
        sched_getaffinity(0, sizeof mask.set, &mask.set) == 0;    // fails above 1024 CPUs: keep what we inherit
    return mask;
}

bool set_cpu_mask(const ThreadCpus& mask) {
    return !mask.known || sched_setaffinity(0, sizeof mask.set, &mask.set) == 0;
}

void set_thread_name(const char* name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

int start_detached_thread(void* (*body)(void*), void* argument) {
    Attributes attributes;
    sigset_t all;
    sigfillset(&all);
    // The C library keeps its own two signals unblocked, without which setuid in a threaded program would hang.
    pthread_attr_setsigmask_np(&attributes.value, &all);
    pthread_attr_setdetachstate(&attributes.value, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes.value, kStackBytes);
    pthread_t thread;
    int error = pthread_create(&thread, &attributes.value, body, argument);
    if (error == 0) return 0;
    pthread_attr_setstacksize(&attributes.value, kStackBytes * 32);    // a program with megabytes of static TLS
    return pthread_create(&thread, &attributes.value, body, argument);
}

}    // namespace pghot
