// SPDX-License-Identifier: Apache-2.0
#pragma once

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

// Starts a detached thread with every signal blocked from its first instruction on, so that no signal of the program
// is ever delivered to it. 0 or an errno. Calls malloc (the C library's thread descriptor), so never from a page call.
int start_detached_thread(void* (*body)(void*), void* argument);

}    // namespace pghot
