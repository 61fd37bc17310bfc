// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pattern.h"

namespace soak {

// Pages that a pipe holds (vmsplice): the kernel cannot move them while they are in it. The memory must not be written
// until then; what comes out of the pipe is what was put in. Few at a time: `possible` says whether one more may be.
class Pin {
public:
    enum class Kind { kLent, kGift };

    static bool possible();
    Pin(const Pattern& pattern, char* memory, Range range, Kind kind);
    ~Pin();
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;

    // The memory was given back while pinned: whoever got it next may have written.
    void expect_anything() { checked_ = false; }
    // A forked child shares the pipe: it closes its end and leaves the contents to its parent.
    void leave_to_parent() { ours_ = false; }

private:
    void check_contents();

    const Pattern pattern_;
    Range range_;
    int ends_[2];
    bool checked_ = true;
    bool ours_ = true;
};

}    // namespace soak
