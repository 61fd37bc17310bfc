// SPDX-License-Identifier: Apache-2.0
#include "runtime/policy/chunk_header.h"

namespace pghot {

unsigned ChunkHeader::regions() const {
    unsigned count = 0;
    for (unsigned i = 0; i < kRegions; ++i) count += (region_pages[0][i] | region_pages[1][i]) != 0;
    return count;
}

Majority ChunkHeader::majority() const {
    uint32_t sum = 0;
    uint32_t most = 0;
    Majority majority;
    for (uint8_t caller = 0; caller < kUnknownCaller; ++caller) {
        sum += node_samples[caller];
        if (node_samples[caller] <= most) continue;
        most = node_samples[caller];
        majority.caller = caller;
    }
    const uint32_t others = 3 * (sum - most);
    if (sum > 0 && most < others + kMajorityLead)
        majority.agreement = most >= others ? Agreement::kOpen : Agreement::kNone;
    return majority;
}

Tick ChunkHeader::evidence_start(const HeatRules& rules) const {
    const Tick begin = half_start - rules.half;
    return later_by(active_since, begin) > 0 ? active_since : begin;
}

}    // namespace pghot
