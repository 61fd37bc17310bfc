// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel/filesystem.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "runtime/kernel/answer.h"

namespace pghot {
namespace {

class Descriptor {
public:
    Descriptor(const char* path, int flags) : fd_(::open(path, flags | O_CLOEXEC)) {
        if (fd_ >= 0) return;
        // Many of the kernel's files are optional, and a folder may be gone with its thread.
        fd_ = errno == ENOENT ? -ENOENT : static_cast<int>(answer(KernelCall::open, fd_));
    }
    ~Descriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const { return fd_; }

private:
    int fd_;    // or -errno
};

long read_some(int fd, std::span<char> out) {
    for (;;) {
        const ssize_t got = ::read(fd, out.data(), out.size());
        if (got >= 0) return got;
        if (errno != EINTR) return answer(KernelCall::read, got);
    }
}

// linux_dirent64 as getdents64(2) writes it; opendir would call malloc.
struct DirectoryEntry {
    uint64_t inode;
    int64_t offset;
    uint16_t record_bytes;
    uint8_t type;
    char name[1];
};

}    // namespace

std::string_view FileSystem::first_line(const char* path, std::span<char> buffer) {
    const long got = read(path, buffer);
    if (got <= 0) return {};
    const std::string_view text(buffer.data(), static_cast<size_t>(got));
    return {text.data(), std::min(text.find('\n'), text.size())};
}

long KernelFiles::read(const char* path, std::span<char> out) {
    const Descriptor file(path, O_RDONLY);
    if (file.get() < 0) return file.get();
    size_t filled = 0;
    while (filled < out.size()) {
        const long got = read_some(file.get(), out.subspan(filled));
        if (got < 0) return got;
        if (got == 0) break;
        filled += static_cast<size_t>(got);
    }
    return static_cast<long>(filled);
}

int KernelFiles::lines(const char* path, std::span<char> buffer, FunctionRef<bool(std::string_view)> visit) {
    const Descriptor file(path, O_RDONLY);
    if (file.get() < 0) return file.get();
    size_t filled = 0;
    bool skipping = false;    // inside a line that was longer than the buffer and has been delivered cut
    for (;;) {
        const long got = read_some(file.get(), buffer.subspan(filled));
        if (got < 0) return static_cast<int>(got);
        if (got == 0) break;
        filled += static_cast<size_t>(got);
        size_t begin = 0;
        while (begin < filled) {
            const void* newline = std::memchr(buffer.data() + begin, '\n', filled - begin);
            if (newline == nullptr) break;
            const size_t end = static_cast<size_t>(static_cast<const char*>(newline) - buffer.data());
            const bool deliver = !skipping;
            skipping = false;
            if (deliver && !visit(std::string_view(buffer.data() + begin, end - begin))) return 0;
            begin = end + 1;
        }
        std::memmove(buffer.data(), buffer.data() + begin, filled - begin);
        filled -= begin;
        if (filled < buffer.size()) continue;
        if (!skipping && !visit(std::string_view(buffer.data(), filled))) return 0;
        skipping = true;
        filled = 0;
    }
    if (filled > 0 && !skipping) visit(std::string_view(buffer.data(), filled));
    return 0;
}

int KernelFiles::list(const char* path, FunctionRef<void(std::string_view)> visit) {
    const Descriptor folder(path, O_RDONLY | O_DIRECTORY);
    if (folder.get() < 0) return folder.get();
    alignas(DirectoryEntry) char buffer[4096];
    for (;;) {
        const long got = syscall(SYS_getdents64, folder.get(), buffer, sizeof buffer);
        if (got < 0) return static_cast<int>(answer(KernelCall::getdents64, got));
        if (got == 0) return 0;
        for (long at = 0; at < got;) {
            const auto* entry = reinterpret_cast<const DirectoryEntry*>(buffer + at);
            const std::string_view name(entry->name);
            if (name != "." && name != "..") visit(name);
            at += entry->record_bytes;
        }
    }
}

}    // namespace pghot
