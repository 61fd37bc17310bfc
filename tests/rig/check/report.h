// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>

namespace rig_check {

// Counts checks; one thread. Every check prints one line, so a log shows what was looked at.
class Report {
public:
    void check(bool good, const std::string& what, const std::string& seen = {}) {
        std::printf("%s %s%s%s\n", good ? "ok  " : "FAIL", what.c_str(), seen.empty() ? "" : ": ", seen.c_str());
        ++(good ? passed_ : failed_);
    }
    int finish(const char* subject) const {
        std::printf("%s: %d passed, %d failed\n", subject, passed_, failed_);
        return failed_ == 0 && passed_ > 0 ? 0 : 1;
    }

private:
    int passed_ = 0, failed_ = 0;
};

// The kernel version whose rules the loaded module follows, as in the module: 6.14 is 614.
using Rules = int;

void check_vectors(Report& report);
void check_attributes(Report& report, Rules rules);
void check_samples(Report& report, Rules rules);
void check_scheduling(Report& report, Rules rules);

}    // namespace rig_check
