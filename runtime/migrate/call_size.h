// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/base/units.h"

namespace pghot {

// How many base pages one moving call may hold, so that the program is not held up by it. A thread that touches a page
// under way sleeps until the kernel has mapped it again. The kernel takes at most 512 base pages at a time (unmaps,
// copies and maps them, then the next), so that is as long as anyone waits; a larger call only shares its fixed cost
// among more pages.
//
// Found by halving and doubling, from what calls took. Owned by the mover. Pure.
class CallSize {
public:
    // 512 pages take 1 to 2 ms on a server and about 10 ms in the emulated machine when its host is idle: what is
    // longer is the processor's time for us being short, and then the fixed cost is high too (10 ms there). So the
    // limit is generous and the least is not small: smaller calls cost the program more in all than they spare it at a
    // time.
    static constexpr uint64_t kLongestWaitNs = 50 * kNsPerMs;
    static constexpr uint32_t kAtATime = kPagesPerChunk;
    static constexpr uint32_t kFewest = 128;

    // `most` is brought up to kFewest.
    explicit CallSize(uint32_t most) : most_(std::max(most, kFewest)), pages_(most_) {}

    uint32_t pages() const { return pages_; }

    // A moving call of so many pages took so long. One of less than half of what was allowed says little about a full
    // one.
    void note(uint32_t pages, uint64_t ns) {
        if (pages < kFewest || pages < std::min(pages_, kAtATime) / 2) return;
        const uint64_t wait_ns = pages <= kAtATime ? ns : ns * kAtATime / pages;
        if (wait_ns > kLongestWaitNs)
            pages_ = std::max(std::min(pages_, kAtATime) / 2, kFewest);
        else if (pages_ >= kAtATime || 2 * wait_ns <= kLongestWaitNs)
            pages_ = std::min(pages_ * 2, most_);
    }

private:
    uint32_t most_;
    uint32_t pages_;
};

}    // namespace pghot
