// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "allocator/jemalloc_api.h"

namespace pghot {

// An arena of jemalloc whose memory lies in `placement` (not 0), for the calling thread's group; made on first use.
// Several per placement, as threads that share one wait for its locks (32-512 KiB blocks, 2 threads: half speed).
// Null when jemalloc has no arena left: the block then goes where all others go. Called where jemalloc holds no lock.
jemalloc::Arena* placed_arena(uint8_t placement);

}    // namespace pghot
