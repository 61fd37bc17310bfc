// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/own_topology.h"

#include "runtime/kernel/syscalls.h"
#include "runtime/kernel/topology.h"

namespace pghot {

bool read_own_topology(FileSystem& files, const Tunables& tunables, Topology& out) {
    uint64_t allowed = 0;
    if (sys::allowed_nodes(allowed) != 0) return false;
    read_topology(files, allowed, {tunables.lower_nodes.words[0], tunables.top_nodes.words[0]}, out);
    return true;
}

}    // namespace pghot
