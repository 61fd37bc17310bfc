// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace pghot::sys {

enum class MemoryPreference : uint8_t {
    kPreferred,      // these nodes first, any other when they are full (never BIND: a full node would then kill)
    kInterleaved,    // pages in turn over these nodes
};

// Sets where the pages of [address, address + bytes) are born; `nodes` has bit N for node N. MPOL_PREFERRED_MANY, and
// below Linux 5.15, which has none, MPOL_PREFERRED with the lowest node. `move_present` also moves pages that are
// there already. Any thread; keeps errno. 0 or -errno.
long set_memory_preference(uintptr_t address, size_t bytes, MemoryPreference preference, uint64_t nodes,
                           bool move_present);

}    // namespace pghot::sys
