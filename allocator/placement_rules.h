// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace pghot {

// Where memory is born.
enum class BirthPlace : uint8_t {
    kLocal,         // first touch: the node of the CPU that touches a page first; no policy is set
    kDram,          // the top-tier nodes
    kSlow,          // the lower-tier nodes
    kNode,          // one node
    kInterleave,    // pages in turn over nodes
};

// A placement: where memory is born, and whether the runtime may move it later.
struct Placement {
    BirthPlace place = BirthPlace::kLocal;
    bool pinned = false;
    uint64_t nodes = 0;    // kNode, kInterleave: bit per node as the text said; 0: not said
    bool operator==(const Placement&) const = default;
};

// Blocks of at least this many usable bytes go to `placement` (index into PlacementRules::placements).
struct SizeRule {
    uint64_t at_least_bytes = 0;
    uint8_t placement = 0;
};

inline constexpr size_t kMaxSizeRules = 15;
inline constexpr size_t kMaxPlacements = kMaxSizeRules + 1;
// Smaller blocks live in jemalloc's thread caches (56 KiB and below), where a placement could not be kept.
inline constexpr uint64_t kMinRuleBytes = 64 * 1024;

// The rules of one process. Plain data. placements[0] is the default: everything that no size rule takes.
struct PlacementRules {
    std::array<Placement, kMaxPlacements> placements{};
    std::array<SizeRule, kMaxSizeRules> size_rules{};
    uint8_t placement_count = 1;
    uint8_t size_rule_count = 0;

    std::span<const Placement> all_placements() const { return {placements.data(), placement_count}; }
    std::span<const SizeRule> all_size_rules() const { return {size_rules.data(), size_rule_count}; }
    // Smallest block that a size rule can take; UINT64_MAX without rules.
    uint64_t smallest_rule_bytes() const;
    // First match wins; 0 when no rule takes the size.
    uint8_t placement_for(uint64_t usable_bytes) const;
};

// What is wrong with a text, for one line to the user. `problem` is a literal that says what to do; null: nothing is.
struct PlacementTextError {
    const char* problem = nullptr;
    size_t position = 0;    // characters from the start of the text
};

// Reads the text of PGHOT_PLACEMENT. With an error `rules` is left alone. Pure; no allocation, no locale, no errno.
//
//   rules      = rule { ";" rule }                    first match wins; empty rules are skipped
//   rule       = [ "size>=" SIZE ":" ] placement { "," attribute }
//   placement  = "local" | "dram" | "slow" | "node:" N | "interleave" [ ":" N["-"N] { "," N["-"N] } ]
//   attribute  = "pinned" | "movable"
//   SIZE       = digits [ "K" | "M" | "G" | "T" ]     powers of 1024, at least 64K
//
// A rule without a size is the default and comes last; without one the default is local.
PlacementTextError parse_placement_rules(std::string_view text, PlacementRules& rules);

}    // namespace pghot
