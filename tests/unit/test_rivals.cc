// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "runtime/kernel/rivals.h"
#include "tests/unit/fake_files.h"

namespace pghot {
namespace {

TEST(Rivals, NothingReadableIsUnknownAndOff) {
    FakeFiles files;
    const Rivals rivals = read_rivals(files);
    EXPECT_EQ(rivals.numa_balancing, Rivals::kUnknown);
    EXPECT_FALSE(rivals.damon_runs);
}

TEST(Rivals, TheKernelsMaskIsRead) {
    FakeFiles files;
    for (const int mask : {0, 1, 2, 3}) {
        files.files["/proc/sys/kernel/numa_balancing"] = std::to_string(mask) + "\n";
        EXPECT_EQ(read_rivals(files).numa_balancing, mask);
    }
    files.files["/proc/sys/kernel/numa_balancing"] = "";
    EXPECT_EQ(read_rivals(files).numa_balancing, Rivals::kUnknown);
}

TEST(Rivals, DamonRunsWhenOneOfItsThreadsIsOn) {
    FakeFiles files;
    const std::string folder = "/sys/kernel/mm/damon/admin/kdamonds/";
    files.files[folder + "nr_kdamonds/state"] = "on\n";    // stands for a file, whose open would be a refused call
    files.files[folder + "0/state"] = "off\n";
    EXPECT_FALSE(read_rivals(files).damon_runs);
    files.files[folder + "1/state"] = "on\n";
    EXPECT_TRUE(read_rivals(files).damon_runs);
}

}    // namespace
}    // namespace pghot
