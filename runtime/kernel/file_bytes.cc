// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel/file_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/kernel/answer.h"

namespace pghot {

int FileBytes::read(const char* path) {
    // A FIFO would be waited for.
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return static_cast<int>(answer(KernelCall::open, fd));
    struct stat info {};
    auto error = static_cast<int>(answer(KernelCall::fstat, fstat(fd, &info)));
    if (error == 0 && (!S_ISREG(info.st_mode) || info.st_size == 0)) error = -EINVAL;
    if (error == 0) error = read_all(fd, static_cast<size_t>(info.st_size));
    close(fd);
    return error;
}

int FileBytes::read_all(int fd, size_t expected) {
    memory_ = AnonymousMemory(expected);
    if (!memory_) return -ENOMEM;
    while (size_ < expected) {
        const ssize_t got = ::read(fd, memory_.bytes().data() + size_, expected - size_);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return static_cast<int>(answer(KernelCall::read, got));
        if (got == 0) break;    // cut meanwhile
        size_ += static_cast<size_t>(got);
    }
    return 0;
}

}    // namespace pghot
