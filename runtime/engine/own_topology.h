// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/base/topology.h"
#include "runtime/config/tunables.h"
#include "runtime/kernel/filesystem.h"

namespace pghot {

// The machine as this process may use it: sysfs, the cpuset's nodes, and what the user said about tiers. Opens files.
// False where the kernel does not tell which nodes are allowed; `out` is then empty.
bool read_own_topology(FileSystem& files, const Tunables& tunables, Topology& out);

}    // namespace pghot
