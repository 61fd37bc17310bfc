// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace pghot {

MappedFile::~MappedFile() {
    if (at_ != nullptr) munmap(at_, size_);
}

int MappedFile::open(const char* path) {
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -errno;
    struct stat info {};
    void* at = MAP_FAILED;
    int error = EINVAL;
    if (fstat(fd, &info) == 0 && info.st_size > 0) {
        at = mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
        error = errno;
    }
    close(fd);
    if (at == MAP_FAILED) return -error;
    at_ = at;
    size_ = static_cast<size_t>(info.st_size);
    return 0;
}

}    // namespace pghot
