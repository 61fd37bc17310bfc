// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace pghot {

// A file that is written once, front to back. In the library only the sampler has some: in its own descriptor table.
class OutputFile {
public:
    enum class Existing { kReplace, kKeep };    // kKeep: an existing file is left alone, opening answers -EEXIST

    OutputFile() = default;
    ~OutputFile() { close(); }
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    // Mode 0644 less the umask. 0 or -errno. ENXIO: a FIFO that nobody reads.
    int open(const char* path, Existing existing);
    // Everything or nothing as far as the caller sees: false after the first failure, errno in error(). EAGAIN: the
    // reader of a FIFO has taken nothing for 200 ms.
    bool write(std::span<const char> bytes);
    bool write(std::span<const std::byte> bytes);
    void close();
    bool is_open() const { return fd_ >= 0; }
    int error() const { return error_; }

private:
    int fd_ = -1;
    int error_ = 0;
};

}    // namespace pghot
