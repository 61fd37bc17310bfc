// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "allocator/placement_rules.h"

namespace pghot {
namespace {

constexpr uint64_t kMib = 1 << 20;

PlacementRules rules_of(std::string_view text) {
    PlacementRules rules;
    const PlacementTextError error = parse_placement_rules(text, rules);
    EXPECT_EQ(error.problem, nullptr) << text << ": " << error.problem << " at " << error.position;
    return rules;
}

PlacementTextError error_of(std::string_view text) {
    PlacementRules rules;
    rules.size_rule_count = 7;    // must stay: rules are left alone on an error
    const PlacementTextError error = parse_placement_rules(text, rules);
    EXPECT_NE(error.problem, nullptr) << text;
    EXPECT_EQ(rules.size_rule_count, 7) << text;
    return error;
}

Placement placement_of(std::string_view text) { return rules_of(text).placements[0]; }

TEST(PlacementRules, EmptyTextIsLocal) {
    for (const char* text : {"", "  ", ";", " ; ;"}) {
        const PlacementRules rules = rules_of(text);
        EXPECT_EQ(rules.placement_count, 1);
        EXPECT_EQ(rules.size_rule_count, 0);
        EXPECT_EQ(rules.placements[0], Placement{});
    }
}

TEST(PlacementRules, EveryPlaceIsRead) {
    EXPECT_EQ(placement_of("local"), (Placement{BirthPlace::kLocal, false, 0}));
    EXPECT_EQ(placement_of("dram"), (Placement{BirthPlace::kDram, false, 0}));
    EXPECT_EQ(placement_of("slow"), (Placement{BirthPlace::kSlow, false, 0}));
    EXPECT_EQ(placement_of("node:2"), (Placement{BirthPlace::kNode, false, 4}));
    EXPECT_EQ(placement_of("interleave"), (Placement{BirthPlace::kInterleave, false, 0}));
    EXPECT_EQ(placement_of("interleave:0-2,5"), (Placement{BirthPlace::kInterleave, false, 0x27}));
}

TEST(PlacementRules, AttributesFollowAComma) {
    EXPECT_EQ(placement_of("slow,pinned"), (Placement{BirthPlace::kSlow, true, 0}));
    EXPECT_EQ(placement_of("node:1,movable"), (Placement{BirthPlace::kNode, false, 2}));
    EXPECT_EQ(placement_of("interleave:0,1,pinned"), (Placement{BirthPlace::kInterleave, true, 3}));
}

TEST(PlacementRules, SpacesDoNotMatter) {
    const PlacementRules rules = rules_of("  size >= 256M : slow , pinned ;\tlocal ");
    ASSERT_EQ(rules.size_rule_count, 1);
    EXPECT_EQ(rules.size_rules[0].at_least_bytes, 256 * kMib);
    EXPECT_EQ(rules.placements[rules.size_rules[0].placement], (Placement{BirthPlace::kSlow, true, 0}));
}

TEST(PlacementRules, SizesAreCountedFromTheThresholdUp) {
    const PlacementRules rules = rules_of("size>=1G:node:2; size>=1M:slow; dram");
    EXPECT_EQ(rules.placement_for(1 * kMib - 1), 0);
    EXPECT_EQ(rules.placements[rules.placement_for(1 * kMib)].place, BirthPlace::kSlow);
    EXPECT_EQ(rules.placements[rules.placement_for(1024 * kMib - 1)].place, BirthPlace::kSlow);
    EXPECT_EQ(rules.placements[rules.placement_for(1024 * kMib)].place, BirthPlace::kNode);
    EXPECT_EQ(rules.placements[0].place, BirthPlace::kDram);
    EXPECT_EQ(rules.smallest_rule_bytes(), 1 * kMib);
}

TEST(PlacementRules, UnitsArePowersOf1024) {
    EXPECT_EQ(rules_of("size>=65536:slow").size_rules[0].at_least_bytes, 65536U);
    EXPECT_EQ(rules_of("size>=64K:slow").size_rules[0].at_least_bytes, 65536U);
    EXPECT_EQ(rules_of("size>=2T:slow").size_rules[0].at_least_bytes, uint64_t{2} << 40);
}

TEST(PlacementRules, EqualPlacementsShareAnIndex) {
    const PlacementRules rules = rules_of("size>=1G:slow; size>=1M:node:0; size>=64K:slow");
    EXPECT_EQ(rules.size_rules[0].placement, rules.size_rules[2].placement);
    EXPECT_EQ(rules.placement_count, 3);
}

TEST(PlacementRules, RuleThatSaysTheDefaultNeedsNoArenas) {
    const PlacementRules rules = rules_of("size>=1M:slow; slow");
    EXPECT_EQ(rules.placement_for(kMib), 0);
}

TEST(PlacementRules, FifteenSizeRulesFitAndSixteenDoNot) {
    std::string text;
    for (int i = 0; i < 15; ++i) text += "size>=" + std::to_string(100 - i) + "M:node:" + std::to_string(i) + ";";
    EXPECT_EQ(rules_of(text + "node:63").placement_count, kMaxPlacements);
    EXPECT_STREQ(error_of(text + "size>=1M:slow").problem, "use at most 15 rules with a size");
}

struct WrongText {
    const char* text;
    size_t position;
    const char* problem_contains;
};

TEST(PlacementRules, ErrorsSayWhereAndWhatToDo) {
    for (const WrongText& wrong : {
             WrongText{"fast", 0, "write local, dram"},
             WrongText{"slower", 0, "write local, dram"},
             WrongText{"local slow", 6, "write ;"},
             WrongText{"local; slow", 7, "move this before"},
             WrongText{"size>=65535:slow", 6, "at least 64K"},
             WrongText{"size>=63K:slow", 6, "at least 64K"},
             WrongText{"size>=:slow", 6, "write a size"},
             WrongText{"size>=-1:slow", 6, "write a size"},
             WrongText{"size>=99999999999999999999:slow", 6, "write a size"},
             WrongText{"size>=99999999999T:slow", 6, "below 2^64"},
             WrongText{"size<1M:slow", 4, "size>="},
             WrongText{"size>=1M slow", 9, "write :"},
             WrongText{"size>=1M:slow; size>=2M:dram", 21, "larger sizes first"},
             WrongText{"size>=1M:slow; size>=1M:dram", 21, "larger sizes first"},
             WrongText{"node", 4, "node:N"},
             WrongText{"node:64", 5, "0 to 63"},
             WrongText{"node:x", 5, "0 to 63"},
             WrongText{"interleave:3-1", 11, "lower node first"},
             WrongText{"interleave:", 11, "0 to 63"},
             WrongText{"slow,", 5, "pinned or movable"},
             WrongText{"slow,1", 5, "pinned or movable"},
             WrongText{"site:file:slow", 4, "call site"},
         }) {
        const PlacementTextError error = error_of(wrong.text);
        if (error.problem == nullptr) continue;
        EXPECT_EQ(error.position, wrong.position) << wrong.text;
        EXPECT_NE(std::string(error.problem).find(wrong.problem_contains), std::string::npos)
            << wrong.text << ": " << error.problem;
    }
}

TEST(PlacementRules, TextNeedNotEndInAZero) {
    const std::string text = "slow,pinnedXXXX";
    EXPECT_EQ(placement_of(std::string_view(text.data(), 11)), (Placement{BirthPlace::kSlow, true, 0}));
}

}    // namespace
}    // namespace pghot
