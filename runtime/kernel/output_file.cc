// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel/output_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/kernel/answer.h"

namespace pghot {
namespace {

// How long the reader of a FIFO may hold up the writer: a thread that has rings to drain, or that an exit waits for.
constexpr int kPatienceMs = 200;

bool takes_more(int fd) {
    pollfd file{fd, POLLOUT, 0};
    int ready = 0;
    do ready = poll(&file, 1, kPatienceMs);
    while (ready < 0 && errno == EINTR);
    answer(KernelCall::poll, ready);
    return ready > 0;
}

bool is_folder(const char* path) {
    struct stat info {};
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

}    // namespace

int OutputFile::open(const char* path, Existing existing) {
    close();
    // O_NONBLOCK: a FIFO without a reader is refused, not waited for.
    const int flags =
        O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (existing == Existing::kReplace ? O_TRUNC : O_EXCL);
    fd_ = ::open(path, flags, 0644);
    error_ = fd_ < 0 ? errno : 0;
    if (error_ == EEXIST && is_folder(path)) error_ = EISDIR;
    if (error_ != 0 && !(existing == Existing::kKeep && error_ == EEXIST)) refused_calls.note(KernelCall::open, error_);
    return -error_;
}

bool OutputFile::write(std::span<const char> bytes) {
    while (!bytes.empty() && error_ == 0) {
        const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
        if (written > 0) {
            bytes = bytes.subspan(static_cast<size_t>(written));
            continue;
        }
        const int reason = written == 0 ? EIO : errno;
        if (reason == EINTR || (reason == EAGAIN && takes_more(fd_))) continue;
        error_ = reason;
        refused_calls.note(KernelCall::write, reason);
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
