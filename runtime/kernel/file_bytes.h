// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "runtime/kernel/memory.h"

namespace pghot {

// A regular file's bytes, read into memory of ours: as a mapping, a file that is cut or written over meanwhile would
// kill its reader (SIGBUS). Takes as much memory as the file is long.
class FileBytes {
public:
    // 0 or -errno. EINVAL: empty, or no regular file.
    int read(const char* path);
    std::span<const std::byte> bytes() const { return memory_.bytes().first(size_); }

private:
    int read_all(int fd, size_t expected);

    AnonymousMemory memory_;
    size_t size_ = 0;
};

}    // namespace pghot
