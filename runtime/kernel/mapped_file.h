// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace pghot {

// A file's bytes as read-only memory. Its descriptor is closed once mapped. A file that is cut while mapped faults its
// reader: only for files that the user names.
class MappedFile {
public:
    MappedFile() = default;
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    // 0 or -errno. An empty file is EINVAL.
    int open(const char* path);
    std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(at_), size_}; }

private:
    void* at_ = nullptr;
    size_t size_ = 0;
};

}    // namespace pghot
