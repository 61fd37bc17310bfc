// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "runtime/base/function_ref.h"

namespace pghot {

// Reading /proc and /sys. An interface so that tests give invented machines. In the library only the sampler calls it:
// its files live in its private descriptor table.
class FileSystem {
public:
    // Reads the file's beginning into `out`. Bytes read, or -errno.
    virtual long read(const char* path, std::span<char> out) = 0;
    // Calls `visit` with every line, without its newline, until it answers false. A line longer than `buffer` is cut.
    // 0 or -errno.
    virtual int lines(const char* path, std::span<char> buffer, FunctionRef<bool(std::string_view)> visit) = 0;
    // Calls `visit` with every name in the folder but . and .. . 0 or -errno.
    virtual int list(const char* path, FunctionRef<void(std::string_view)> visit) = 0;

    // The file's first line in `buffer`; empty when it cannot be read.
    std::string_view first_line(const char* path, std::span<char> buffer);

protected:
    ~FileSystem() = default;
};

// The machine's own files. Stateless; descriptors are closed before each call returns.
class KernelFiles final : public FileSystem {
public:
    long read(const char* path, std::span<char> out) override;
    int lines(const char* path, std::span<char> buffer, FunctionRef<bool(std::string_view)> visit) override;
    int list(const char* path, FunctionRef<void(std::string_view)> visit) override;
};

}    // namespace pghot
