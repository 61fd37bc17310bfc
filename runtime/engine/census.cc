// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/census.h"

#include <algorithm>

namespace pghot {
namespace {

uint64_t pages_of(const AddressRange& range) { return range.targets == 0 ? 0 : (range.end - range.begin) / kPageBytes; }

}    // namespace

uint64_t Census::take(std::span<const AddressRange> ranges, const Topology& topology, Ask ask, Skip skip, Found found) {
    uint64_t pages = 0;
    for (const AddressRange& range : ranges) pages += pages_of(range);
    const uint64_t step = std::max<uint64_t>((pages + kQuestions - 1) / kQuestions, 1);
    uint64_t in_top = 0;
    size_t asked = 0;
    const auto ask_now = [&] {
        const bool told = ask(std::span(pages_).first(asked), std::span(statuses_).first(asked)) == 0;
        for (size_t i = 0; told && i < asked; ++i) {
            const NodeId node{static_cast<int16_t>(statuses_[i])};
            if (statuses_[i] < 0 || !topology.valid(node)) continue;
            in_top += topology.is_top(node);
            found(reinterpret_cast<uintptr_t>(pages_[i]), node);
        }
        asked = 0;
    };
    // Multiples of the golden ratio: starts that lie between those of the turns before.
    uint64_t next = turn_++ * 0x9e3779b97f4a7c15ull % step;
    for (const AddressRange& range : ranges) {
        const uint64_t in_range = pages_of(range);
        for (; next < in_range; next += step) {
            const uintptr_t page = range.begin + next * kPageBytes;
            if (skip(page)) continue;
            pages_[asked++] = reinterpret_cast<void*>(page);    // never dereferenced
            if (asked == pages_.size()) ask_now();
        }
        next -= in_range;
    }
    if (asked > 0) ask_now();
    return in_top * step;
}

}    // namespace pghot
