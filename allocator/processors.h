// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace pghot {

// Processors that the calling thread may use, at least 1. One system call, no libc function that another preload
// library could wrap; may set errno.
unsigned allowed_processors();

}    // namespace pghot
