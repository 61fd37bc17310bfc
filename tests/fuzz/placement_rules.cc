// SPDX-License-Identifier: Apache-2.0
// Any text as PGHOT_PLACEMENT: read or refused, never out of bounds, and what was read keeps its promises.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "allocator/placement_rules.h"

namespace {

using namespace pghot;

void check(bool right) {
    if (!right) abort();
}

void check_rules(const PlacementRules& rules) {
    check(rules.placement_count >= 1 && rules.placement_count <= kMaxPlacements);
    check(rules.size_rule_count <= kMaxSizeRules);
    uint64_t larger = UINT64_MAX;
    for (const SizeRule& rule : rules.all_size_rules()) {
        check(rule.at_least_bytes >= kMinRuleBytes && rule.at_least_bytes < larger);
        check(rule.placement < rules.placement_count);
        check(rules.placement_for(rule.at_least_bytes) == rule.placement);
        larger = rule.at_least_bytes;
    }
    for (const Placement& placement : rules.all_placements())
        if (placement.place == BirthPlace::kNode) check(placement.nodes != 0);
}

}    // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    PlacementRules rules;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const PlacementTextError error = parse_placement_rules(text, rules);
    check(error.position <= size);
    if (error.problem != nullptr) check(rules.size_rule_count == 0 && rules.placements[0] == Placement{});
    check_rules(rules);
    return 0;
}
