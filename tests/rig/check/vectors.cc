// SPDX-License-Identifier: Apache-2.0
// The driver half of ibs_registers.h against the known data sources of the real driver.
#include <string>

#include "tests/rig/check/report.h"
#include "tests/rig/module/ibs_registers.h"

namespace rig_check {
namespace {

constexpr uint64_t kLoad = IBS_DATA3_LOAD | IBS_DATA3_LINEAR_VALID;
constexpr uint64_t kStore = IBS_DATA3_STORE | IBS_DATA3_LINEAR_VALID;
constexpr uint64_t kL2Miss = IBS_DATA3_DC_MISS | IBS_DATA3_L2_MISS;

constexpr uint64_t source(unsigned value, uint64_t flags = 0) {
    return IBS_DATA2_SRC_LO(value) | IBS_DATA2_SRC_HI(value) | flags;
}

struct Vector {
    const char* name;
    uint64_t op_data2, op_data3;
    int full;    // the kernel is 6.6 or later
    uint64_t expected;
};

constexpr Vector kVectors[] = {
    {"local DRAM", source(3), kLoad | kL2Miss, 1, 0x1a29081042},
    {"remote DRAM", source(3, IBS_DATA2_REMOTE_NODE), kLoad | kL2Miss, 1, 0x103a29082042},
    {"CXL", source(8), kLoad | kL2Miss, 1, 0x1229080002},
    {"CXL, remote", source(8, IBS_DATA2_REMOTE_NODE), kLoad | kL2Miss, 1, 0x103229080002},
    {"L1", 0, kLoad, 1, 0x229080142},
    {"L2", 0, kLoad | IBS_DATA3_DC_MISS, 1, 0x429080442},
    {"L3", source(1, IBS_DATA2_HIT_OWNED), kLoad | kL2Miss, 1, 0x629080842},
    {"near CCX", source(2, IBS_DATA2_HIT_OWNED), kLoad | kL2Miss, 1, 0x83629088042},
    {"far CCX", source(5, IBS_DATA2_HIT_OWNED), kLoad | kL2Miss, 1, 0x103629090042},
    {"line fill buffer", source(0), kLoad | kL2Miss | IBS_DATA3_NO_MAB, 1, 0x1829080242},
    {"load without source", source(0), kLoad | kL2Miss, 1, 0x1e29080022},
    {"store that misses", source(0), kStore | kL2Miss, 1, 0x1e29080024},
    {"local DRAM before 6.6", source(3), kLoad | kL2Miss, 0, 0x29081042},
    {"CXL before 6.6", source(8), kLoad | kL2Miss, 0, 0x1229080002},
};

std::string hex(uint64_t value) {
    char text[32];
    std::snprintf(text, sizeof text, "%#llx", static_cast<unsigned long long>(value));
    return text;
}

}    // namespace

void check_vectors(Report& report) {
    for (const Vector& vector : kVectors) {
        const uint64_t seen = ibs_data_src(vector.op_data2, vector.op_data3, vector.full);
        report.check(seen == vector.expected, std::string("data source of ") + vector.name, hex(seen));
    }
}

}    // namespace rig_check
