// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernel/filesystem.h"

namespace pghot {

// Who else on this machine moves pages between nodes. What they do is met by asking the kernel where a page is before
// each move; here they are only seen, so that a report can name them.
struct Rivals {
    static constexpr int kUnknown = -1;

    int numa_balancing = kUnknown;    // kernel.numa_balancing, a bit mask: 1 between nodes, 2 memory tiering
    bool damon_runs = false;          // a DAMON thread of the kernel is on; its schemes may move pages
};

// Reads /proc/sys/kernel/numa_balancing and the state of each kdamond. What cannot be read is unknown, or off. DAMON's
// files are root's alone: without that right it is not seen.
Rivals read_rivals(FileSystem& files);

}    // namespace pghot
