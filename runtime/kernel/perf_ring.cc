// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel/perf_ring.h"

#include <linux/perf_event.h>

#include <cstring>

namespace pghot {
namespace {

constexpr size_t kLongestRecord = 512;    // ours are at most 112 bytes; longer ones are delivered cut

}    // namespace

// Bytes at `position` in one piece: in place where they do not wrap, else copied.
const std::byte* PerfRing::at(uint64_t position, size_t bytes, std::span<std::byte> copy) const {
    const size_t begin = position & (data_.size() - 1);
    const size_t to_end = data_.size() - begin;
    if (bytes <= to_end) return data_.data() + begin;
    std::memcpy(copy.data(), data_.data() + begin, to_end);
    std::memcpy(copy.data() + to_end, data_.data(), bytes - to_end);
    return copy.data();
}

size_t PerfRing::drain(FunctionRef<void(const PerfRecord&)> use) {
    if (control_ == nullptr) return 0;
    // Pairs with the kernel's release of data_head after it wrote the records.
    const uint64_t head = __atomic_load_n(&control_->data_head, __ATOMIC_ACQUIRE);
    uint64_t tail = control_->data_tail;
    const uint64_t unread = head - tail;
    std::byte copy[kLongestRecord];
    while (unread <= data_.size() && head - tail >= sizeof(perf_event_header)) {
        perf_event_header header;
        // Records are 8-byte aligned, so a header never wraps.
        std::memcpy(&header, at(tail, sizeof header, copy), sizeof header);
        if (header.size < sizeof header || header.size > head - tail) break;
        const size_t bytes = header.size < kLongestRecord ? header.size : kLongestRecord;
        const std::byte* record = at(tail, bytes, copy);
        use(PerfRecord{header.type, header.misc, {record + sizeof header, bytes - sizeof header}});
        tail += header.size;
    }
    // Pairs with the kernel's acquire before it overwrites the room. What could not be parsed is given up.
    __atomic_store_n(&control_->data_tail, head, __ATOMIC_RELEASE);
    return unread;
}

}    // namespace pghot
