// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/function_ref.h"

struct perf_event_mmap_page;

namespace pghot {

// One record of a perf ring, copied out where it wrapped. `body` is what follows the 8-byte header, valid during the
// call that delivers it.
struct PerfRecord {
    uint32_t type = 0;    // PERF_RECORD_*
    uint16_t misc = 0;
    std::span<const std::byte> body;
};

// The consumer's side of a perf ring as memory: control page and data area. Works on arrays in tests.
//
//      data:  ....[tail === unread === head)........    head: the kernel writes, only grows
//              free                     free            tail: we write,          only grows
//
// One reader thread. Does not own the memory.
class PerfRing {
public:
    PerfRing() = default;
    // `data.size()` is a power of two, as the kernel demands.
    PerfRing(perf_event_mmap_page* control, std::span<const std::byte> data) : control_(control), data_(data) {}

    // Delivers every record between tail and the head seen at entry, then gives the room back to the kernel. A record
    // that cannot be (size below its header, or beyond the head) ends the drain and discards what was unread: the
    // ring is resynchronised rather than read wildly. Returns the bytes that were unread.
    size_t drain(FunctionRef<void(const PerfRecord&)> use);

    size_t capacity_bytes() const { return data_.size(); }

private:
    const std::byte* at(uint64_t position, size_t bytes, std::span<std::byte> copy) const;

    perf_event_mmap_page* control_ = nullptr;
    std::span<const std::byte> data_;
};

}    // namespace pghot
