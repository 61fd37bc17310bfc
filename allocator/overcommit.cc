// SPDX-License-Identifier: Apache-2.0
#include "allocator/overcommit.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "allocator/errno_guard.h"

namespace pghot {
namespace {

// System calls by number: libc's functions may be another preload library's, and this runs under jemalloc's start lock.
bool file_says_overcommit() {
    constexpr int kReadAndCloseOnExec = 02000000;    // O_RDONLY | O_CLOEXEC
    const long file = syscall(SYS_open, "/proc/sys/vm/overcommit_memory", kReadAndCloseOnExec);
    if (file < 0) return false;    // as jemalloc takes it
    char mode = '2';
    syscall(SYS_read, file, &mode, 1);
    syscall(SYS_close, file);
    return mode == '0' || mode == '1';
}

// Not zero at first, so that it lies among data which loading has touched already: a page less for a short-lived
// process.
enum class Answer : unsigned char { kNotAsked = 1, kYes, kNo };
constinit std::atomic<Answer> answer{Answer::kNotAsked};

}    // namespace

bool kernel_overcommits() {
    const Answer known = answer.load(std::memory_order_relaxed);
    if (known != Answer::kNotAsked) return known == Answer::kYes;
    const ErrnoGuard errno_guard;
    const bool overcommits = file_says_overcommit();
    answer.store(overcommits ? Answer::kYes : Answer::kNo, std::memory_order_relaxed);
    return overcommits;
}

}    // namespace pghot
