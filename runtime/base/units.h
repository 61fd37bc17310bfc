// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace pghot {

inline constexpr uint64_t kPageBytes = 4096;           // x86-64 base page
inline constexpr uint64_t kChunkBytes = 2ull << 20;    // one page-table page of base pages = one PMD huge page
inline constexpr uint32_t kPagesPerChunk = kChunkBytes / kPageBytes;
inline constexpr uint64_t kNsPerMs = 1000000;
inline constexpr uint64_t kNsPerSecond = 1000000000;
inline constexpr uint64_t kMiB = 1ull << 20;
inline constexpr size_t kSettingTextBytes = 1024;    // longest text of a setting (rules, a file name), with its zero

// Nanoseconds of CLOCK_MONOTONIC, the clock of our perf rings. Signed difference, so that "a little before" is small.
struct TimeNs {
    uint64_t ns = 0;
    friend constexpr auto operator<=>(TimeNs, TimeNs) = default;
    friend constexpr int64_t operator-(TimeNs a, TimeNs b) { return static_cast<int64_t>(a.ns - b.ns); }
    friend constexpr TimeNs operator+(TimeNs a, uint64_t ns) { return TimeNs{a.ns + ns}; }
};

// A NUMA node number as the kernel counts them; kNoNode where there is none.
struct NodeId {
    int16_t value = -1;
    constexpr bool valid() const { return value >= 0; }
    friend constexpr auto operator<=>(NodeId, NodeId) = default;
};
inline constexpr NodeId kNoNode{};

// Addresses are plain uintptr_t values of the observed program: never dereferenced by the policy.
constexpr uintptr_t page_of(uintptr_t address) { return address & ~(uintptr_t{kPageBytes} - 1); }
constexpr uintptr_t chunk_of(uintptr_t address) { return address & ~(uintptr_t{kChunkBytes} - 1); }
constexpr uint32_t page_in_chunk(uintptr_t address) {
    return static_cast<uint32_t>((address & (kChunkBytes - 1)) / kPageBytes);
}

}    // namespace pghot
