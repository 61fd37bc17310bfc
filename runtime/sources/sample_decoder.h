// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/base/topology.h"
#include "runtime/kernel/perf_event.h"
#include "runtime/policy/sample.h"

namespace pghot {

// What the body of a PERF_RECORD_SAMPLE with kSampleType holds, in the kernel's order.
struct RawSample {
    uint64_t id = 0;
    uint32_t pid = 0;
    uint32_t tid = 0;
    uint64_t time_ns = 0;
    uint64_t address = 0;
    uint32_t cpu = 0;
    uint64_t period = 0;
    uint32_t latency_cycles = 0;    // WEIGHT_STRUCT var1: DcMissLat
    uint64_t data_src = 0;
    uint64_t page_bytes = 0;    // 0 where the page is not mapped
};

// False where the record is too short to be one of ours.
bool decode_sample(const PerfRecord& record, RawSample& out);

// What served the access, from perf_mem_data_src. Covers the encodings of 6.1 to 6.5 (lvl bits only) and of 6.6 on
// (lvl_num): CXL is lvl_num 9; DRAM lvl_num 0xd or one of the RAM level bits; caches lvl_num 1-4 and 0xb or the cache
// bits. A line fill buffer, NA, and stores that miss say nothing: kNoLevel.
ServedBy classify(uint64_t data_src);

// Whether memory of another node than the CPU's served it, as far as the PMU tells. Cache lines of another node too.
bool is_remote(uint64_t data_src);

// IBS leaves ADDR 0 where it had no linear address; kernel-half and non-canonical addresses are not the program's.
bool is_user_address(uint64_t address);

// The sample as the policy takes it. `origin` says which source asked.
Sample to_sample(const RawSample& raw, const Topology& topology, SampleOrigin origin);

}    // namespace pghot
