// SPDX-License-Identifier: Apache-2.0
// rules_check VERSION: checks the loaded ibs_op against the rules of that kernel version ("6.14"). Runs in the rig as
// root.
#include <cstdio>
#include <cstdlib>

#include "tests/rig/check/event.h"
#include "tests/rig/check/report.h"

int main(int argc, char** argv) {
    int major = 0, minor = 0;
    if (argc != 2 || std::sscanf(argv[1], "%d.%d", &major, &minor) != 2) {
        std::fprintf(stderr, "usage: rules_check 6.1|6.2|6.6|6.14|6.15\n");
        return 2;
    }
    if (rig_check::ibs_type() == 0) {
        std::fprintf(stderr, "rules_check: no PMU ibs_op here\n");
        return 2;
    }
    setvbuf(stdout, nullptr, _IOLBF, 0);
    rig_check::Report report;
    const rig_check::Rules rules = major * 100 + minor;
    check_vectors(report);
    check_attributes(report, rules);
    check_samples(report, rules);
    check_scheduling(report, rules);
    return report.finish(argv[1]);
}
