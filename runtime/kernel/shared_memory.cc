// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel/shared_memory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/base/units.h"
#include "runtime/kernel/answer.h"
#include "runtime/kernel/syscalls.h"

namespace pghot {
namespace {

constexpr unsigned kLockTries = 200;
constexpr uint64_t kLockPauseNs = kNsPerMs;
constexpr unsigned kOpenTries = 16;    // each time its last user left between our opening and locking it

void pause() {
    const uint32_t word = 0;
    sys::futex_wait(&word, 0, kLockPauseNs);
}

}    // namespace

Status SharedMemory::open(const char* path, size_t bytes, Missing missing) {
    close();
    Status status{"the file in /dev/shm comes and goes", EAGAIN};
    for (unsigned i = 0; i < kOpenTries; ++i) {
        is_gone_ = false;
        status = open_once(path, bytes, missing);
        if (status.ok()) return status;
        close();
        if (!is_gone_) return status;
    }
    return status;
}

// 0 or -errno. ENOENT with kMake: somebody else's file went between our two calls.
int SharedMemory::open_file(const char* path, Missing missing) {
    constexpr int kFlags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    errno = EEXIST;
    if (missing == Missing::kMake) fd_ = ::open(path, kFlags | O_CREAT | O_EXCL, 0600);
    if (fd_ < 0 && errno == EEXIST) fd_ = ::open(path, kFlags);
    if (fd_ >= 0) return 0;
    return errno == ENOENT ? -ENOENT : static_cast<int>(answer(KernelCall::open, fd_));
}

Status SharedMemory::open_once(const char* path, size_t bytes, Missing missing) {
    if (const int error = open_file(path, missing); error != 0) {
        is_gone_ = error == -ENOENT && missing == Missing::kMake;
        return {"the file in /dev/shm cannot be opened", -error};
    }
    Status status = lock();
    if (status.ok()) status = check(bytes);
    if (!status.ok()) return status;
    status = map(bytes);
    if (!status.ok() && is_new_) remove(path);
    return status;
}

Status SharedMemory::lock() {
    for (unsigned i = 0; i < kLockTries; ++i) {
        if (flock(fd_, LOCK_EX | LOCK_NB) == 0) return {};
        if (errno != EWOULDBLOCK && errno != EINTR)
            return {"the file in /dev/shm cannot be locked", static_cast<int>(-answer(KernelCall::flock, -1))};
        pause();
    }
    return {"another process holds the lock of the file in /dev/shm", EBUSY};
}

Status SharedMemory::check(size_t bytes) {
    struct stat info {};
    if (const long error = answer(KernelCall::fstat, fstat(fd_, &info)); error != 0)
        return {"the file in /dev/shm cannot be examined", static_cast<int>(-error)};
    is_gone_ = info.st_nlink == 0;
    if (is_gone_) return {"the file in /dev/shm was removed", ENOENT};
    if (!S_ISREG(info.st_mode)) return {"the name in /dev/shm is no plain file", EINVAL};
    if (info.st_uid != geteuid()) return {"the file in /dev/shm is another user's", EPERM};
    if ((info.st_mode & 07777) != 0600) return {"the file in /dev/shm is open to others", EACCES};
    if (info.st_nlink != 1) return {"the file in /dev/shm has several names", EMLINK};
    is_new_ = info.st_size == 0;
    if (!is_new_ && static_cast<uint64_t>(info.st_size) != bytes)
        return {"the file in /dev/shm is of another version", EINVAL};
    identity_ = info.st_ino;
    return {};
}

Status SharedMemory::map(size_t bytes) {
    // Allocated now: a full /dev/shm would otherwise kill whoever writes to the memory (SIGBUS).
    const auto length = static_cast<off_t>(bytes);
    if (const long error = is_new_ ? answer(KernelCall::fallocate, fallocate(fd_, 0, 0, length)) : 0; error != 0)
        return {"no room in /dev/shm", static_cast<int>(-error)};
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (at == MAP_FAILED)
        return {"the file in /dev/shm cannot be mapped", static_cast<int>(-answer(KernelCall::mmap, -1))};
    answer(KernelCall::madvise, madvise(at, bytes, MADV_DONTFORK));
    at_ = at;
    size_ = bytes;
    return {};
}

int SharedMemory::remove(const char* path) { return static_cast<int>(answer(KernelCall::unlink, unlink(path))); }

void SharedMemory::close() {
    if (fd_ < 0) return;
    // The mapping keeps the open file, and with it the lock.
    answer(KernelCall::flock, flock(fd_, LOCK_UN));
    ::close(fd_);
    fd_ = -1;
}

void SharedMemory::unmap() {
    if (at_ != nullptr) answer(KernelCall::munmap, munmap(at_, size_));
    at_ = nullptr;
    size_ = 0;
}

}    // namespace pghot
