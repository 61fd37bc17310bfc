// SPDX-License-Identifier: Apache-2.0
#include "runtime/sources/sample_decoder.h"

#include <cstddef>
#include <cstring>

namespace pghot {
namespace {

// The body as the kernel lays it out for kSampleType (perf_output_sample).
struct Body {
    uint64_t identifier;
    uint32_t pid, tid;
    uint64_t time;
    uint64_t addr;
    uint32_t cpu, reserved;
    uint64_t period;
    uint32_t weight_var1;
    uint16_t weight_var2, weight_var3;
    uint64_t data_src;
    uint64_t data_page_size;
};
static_assert(sizeof(Body) == 72);

constexpr uint64_t kLevelBitsOfCaches =
    PERF_MEM_LVL_L1 | PERF_MEM_LVL_L2 | PERF_MEM_LVL_L3 | PERF_MEM_LVL_REM_CCE1 | PERF_MEM_LVL_REM_CCE2;
constexpr uint64_t kLevelBitsOfRam = PERF_MEM_LVL_LOC_RAM | PERF_MEM_LVL_REM_RAM1 | PERF_MEM_LVL_REM_RAM2;

// perf_mem_data_src.mem_lvl_num; from linux/perf_event.h, where older headers lack the CXL value.
enum LevelNumber : unsigned { kL1 = 1, kL4 = 4, kCxl = 9, kAnyCache = 0xb, kRam = 0xd };

// User half of the address space with five-level page tables.
constexpr uint64_t kUserAddressEnd = 1ull << 56;

}    // namespace

// Field by field: a copy of the body on the way costs 3 ns a sample (tests/sim/bench_heat).
bool decode_sample(const PerfRecord& record, RawSample& out) {
    if (record.body.size() < sizeof(Body)) return false;
    const std::byte* const body = record.body.data();
    const auto read = [body](auto& field, size_t offset) { std::memcpy(&field, body + offset, sizeof field); };
    read(out.id, offsetof(Body, identifier));
    read(out.pid, offsetof(Body, pid));
    read(out.tid, offsetof(Body, tid));
    read(out.time_ns, offsetof(Body, time));
    read(out.address, offsetof(Body, addr));
    read(out.cpu, offsetof(Body, cpu));
    read(out.period, offsetof(Body, period));
    read(out.latency_cycles, offsetof(Body, weight_var1));
    read(out.data_src, offsetof(Body, data_src));
    read(out.page_bytes, offsetof(Body, data_page_size));
    return true;
}

ServedBy classify(uint64_t data_src) {
    perf_mem_data_src source{};
    source.val = data_src;
    const unsigned number = source.mem_lvl_num;
    if (number == kCxl) return ServedBy::kExtMem;
    if (number == kRam || (source.mem_lvl & kLevelBitsOfRam) != 0) return ServedBy::kDram;
    if ((number >= kL1 && number <= kL4) || number == kAnyCache) return ServedBy::kCache;
    return (source.mem_lvl & kLevelBitsOfCaches) != 0 ? ServedBy::kCache : ServedBy::kNoLevel;
}

bool is_remote(uint64_t data_src) {
    perf_mem_data_src source{};
    source.val = data_src;
    return source.mem_remote != 0 || (source.mem_lvl & (PERF_MEM_LVL_REM_RAM1 | PERF_MEM_LVL_REM_RAM2)) != 0;
}

bool is_user_address(uint64_t address) { return address >= kPageBytes && address < kUserAddressEnd; }

Sample to_sample(const RawSample& raw, const Topology& topology, SampleOrigin origin) {
    perf_mem_data_src source{};
    source.val = raw.data_src;
    Sample sample;
    sample.address = raw.address;
    sample.time = TimeNs{raw.time_ns};
    sample.tid = raw.tid;
    sample.cpu = static_cast<uint16_t>(raw.cpu);
    sample.node = topology.node_of(raw.cpu);
    sample.served_by = classify(raw.data_src);
    sample.origin = origin;
    sample.store = (source.mem_op & PERF_MEM_OP_STORE) != 0;
    sample.remote = sample.served_by == ServedBy::kDram && is_remote(raw.data_src);
    sample.huge = raw.page_bytes == kChunkBytes;
    sample.latency_cycles = raw.latency_cycles;
    return sample;
}

}    // namespace pghot
