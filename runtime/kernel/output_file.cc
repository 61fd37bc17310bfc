// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace pghot {

int OutputFile::open(const char* path, Existing existing) {
    close();
    const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (existing == Existing::kReplace ? O_TRUNC : O_EXCL);
    fd_ = ::open(path, flags, 0644);
    error_ = fd_ < 0 ? errno : 0;
    return -error_;
}

bool OutputFile::write(std::span<const char> bytes) {
    while (!bytes.empty() && error_ == 0) {
        const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
        if (written > 0)
            bytes = bytes.subspan(static_cast<size_t>(written));
        else if (written < 0 && errno != EINTR)
            error_ = errno;
    }
    return error_ == 0;
}

bool OutputFile::write(std::span<const std::byte> bytes) {
    return write(std::span(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void OutputFile::close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

}    // namespace pghot
