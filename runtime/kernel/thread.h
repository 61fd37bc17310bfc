// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <sched.h>

namespace pghot {

// CPUs that our threads may use.
struct ThreadCpus {
    cpu_set_t set{};
    bool known = false;
};

// The calling thread's CPU mask.
ThreadCpus current_cpu_mask();
// False when the kernel refused it (no such CPU, or outside the cpuset); nothing is changed then.
bool set_cpu_mask(const ThreadCpus& mask);
void set_thread_name(const char* name);    // at most 15 bytes

// What runs on a thread of ours; it decides on the stack.
enum class ThreadRuns {
    kOwnCode,
    kExitHandlers,    // may end as the process's last thread: the C library runs the program's exit handlers there
};

// Notes the static thread-local storage of this process, which the C library takes out of every thread's stack. Once,
// at load and before the first thread of ours: walks the list of loaded objects under the loader's lock.
void note_static_tls();

// Starts a thread with every signal blocked from its first instruction on, so that no signal of the program is ever
// delivered to it. 0 or an errno. Calls malloc (the C library's thread descriptor), so never from a page call.
int start_detached_thread(ThreadRuns runs, void* (*body)(void*), void* argument);
// The same; the caller hands `thread` to pthread_join.
int start_joinable_thread(ThreadRuns runs, void* (*body)(void*), void* argument, pthread_t& thread);

}    // namespace pghot
