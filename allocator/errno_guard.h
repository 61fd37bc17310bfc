// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>

namespace pghot {

// Puts errno back at the end of the scope: a malloc that succeeds, and every free, leaves errno alone.
class ErrnoGuard {
public:
    ErrnoGuard() : kept_(errno) {}
    ~ErrnoGuard() { errno = kept_; }
    ErrnoGuard(const ErrnoGuard&) = delete;
    ErrnoGuard& operator=(const ErrnoGuard&) = delete;

private:
    int kept_;
};

}    // namespace pghot
