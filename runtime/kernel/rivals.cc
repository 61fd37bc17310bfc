// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel/rivals.h"

#include <fmt/compile.h>

#include "runtime/kernel/text.h"

namespace pghot {
namespace {

constexpr const char* kKdamonds = "/sys/kernel/mm/damon/admin/kdamonds";

bool damon_runs(FileSystem& files) {
    bool runs = false;
    files.list(kKdamonds, [&](std::string_view name) {
        if (name.front() < '0' || name.front() > '9') return;    // nr_kdamonds, a file
        char path[128];
        char line[16];
        *fmt::format_to_n(path, sizeof path - 1, FMT_COMPILE("{}/{}/state"), kKdamonds, name).out = '\0';
        runs |= files.first_line(path, line) == "on";
    });
    return runs;
}

}    // namespace

Rivals read_rivals(FileSystem& files) {
    Rivals rivals;
    char buffer[32];
    std::string_view line = files.first_line("/proc/sys/kernel/numa_balancing", buffer);
    int mask = 0;
    if (take_number(line, mask)) rivals.numa_balancing = mask;
    rivals.damon_runs = damon_runs(files);
    return rivals;
}

}    // namespace pghot
