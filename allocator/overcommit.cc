// SPDX-License-Identifier: Apache-2.0
#include "allocator/overcommit.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>

#include "allocator/errno_guard.h"

namespace pghot {
namespace {

// More than any machine may commit, and less than the largest hole between a program and its libraries (42 TiB).
constexpr size_t kMoreThanMemory = size_t{32} << 40;

// A kernel that counts every mapping ignores MAP_NORESERVE and refuses. Others may refuse for other reasons
// (RLIMIT_AS, RLIMIT_DATA).
bool grants_more_than_memory() {
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* mapping = mmap(nullptr, kMoreThanMemory, PROT_READ | PROT_WRITE, kFlags, -1, 0);
    if (mapping == MAP_FAILED) return false;
    munmap(mapping, kMoreThanMemory);
    return true;
}

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
    const bool overcommits = grants_more_than_memory() || file_says_overcommit();
    answer.store(overcommits ? Answer::kYes : Answer::kNo, std::memory_order_relaxed);
    return overcommits;
}

}    // namespace pghot
