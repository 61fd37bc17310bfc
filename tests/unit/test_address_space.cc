// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <linux/mempolicy.h>

#include <vector>

#include "runtime/kernel/address_space.h"
#include "tests/unit/fake_files.h"

namespace pghot {
namespace {

bool movable(std::string_view line) {
    Mapping mapping;
    EXPECT_TRUE(parse_mapping(line, mapping)) << line;
    return mapping.movable_kind;
}

TEST(Mapping, PrivateAnonymousMemoryMayMove) {
    EXPECT_TRUE(movable("7f0000000000-7f0008000000 rw-p 00000000 00:00 0 "));
    EXPECT_TRUE(movable("55d0c7a5f000-55d0c7a80000 rw-p 00000000 00:00 0                          [heap]"));
    EXPECT_TRUE(movable("7ffd9d5d8000-7ffd9d5f9000 rw-p 00000000 00:00 0                          [stack]"));
    EXPECT_TRUE(movable("7f0000000000-7f0000001000 r--p 00000000 00:00 0 [anon: glibc: malloc]"));
    EXPECT_TRUE(movable("7f0000000000-7f0000001000 r--p 00000000 00:00 0 [anon:mine]"));
}

TEST(Mapping, EverythingElseStays) {
    EXPECT_FALSE(movable("7f0000000000-7f0008000000 rw-s 00000000 00:01 1034 /dev/zero (deleted)"));
    EXPECT_FALSE(movable("55d0c7a5f000-55d0c7a80000 r-xp 00001000 fe:00 1234 /usr/bin/true"));
    EXPECT_FALSE(movable("7f0000000000-7f0000200000 rw-p 00000000 00:0f 99 /anon_hugepage (deleted)"));
    EXPECT_FALSE(movable("7ffd9d5d8000-7ffd9d5f9000 r--p 00000000 00:00 0 [vvar]"));
    EXPECT_FALSE(movable("7ffd9d5d8000-7ffd9d5f9000 r-xp 00000000 00:00 0 [vdso]"));
    EXPECT_FALSE(movable("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]"));
    EXPECT_FALSE(movable("7f0000000000-7f0008000000 ---p 00000000 00:00 0 ")) << "a reservation";
}

TEST(Mapping, GarbageIsRefused) {
    Mapping mapping;
    for (const char* line : {"", "x", "1000", "1000-", "2000-1000 rw-p 0 0:0 0", "1000-2000", "1000-2000 rw",
                             "1000-2000 rw-p", "1000-2000 rw-p 0", "1000-2000 rw-p zz 00:00 0"})
        EXPECT_FALSE(parse_mapping(line, mapping)) << line;
}

Topology three_nodes() {
    Topology topology;
    topology.node_count = 3;
    for (unsigned node = 0; node < 3; ++node) topology.nodes[node] = {.online_memory = true, .allowed = true};
    topology.nodes[0].has_cpus = topology.nodes[1].has_cpus = true;
    topology.nodes[2].lower_tier = true;
    return topology;
}

TEST(PromotionTargets, APolicyOfTheProgramLimitsThem) {
    const Topology topology = three_nodes();
    EXPECT_EQ(promotion_targets({MPOL_DEFAULT, 0}, topology), 0b011u);
    EXPECT_EQ(promotion_targets({MPOL_LOCAL, 0}, topology), 0b011u);
    EXPECT_EQ(promotion_targets({MPOL_PREFERRED, 0}, topology), 0b011u) << "how older kernels say local";
    EXPECT_EQ(promotion_targets({MPOL_BIND, 0b100}, topology), 0u) << "bound to the lower tier";
    EXPECT_EQ(promotion_targets({MPOL_BIND, 0b110}, topology), 0b010u);
    EXPECT_EQ(promotion_targets({MPOL_PREFERRED, 0b100}, topology), 0u);
    EXPECT_EQ(promotion_targets({5 /* PREFERRED_MANY */, 0b101}, topology), 0b001u);
    EXPECT_EQ(promotion_targets({MPOL_INTERLEAVE, 0b111}, topology), 0u);
    EXPECT_EQ(promotion_targets({6 /* WEIGHTED_INTERLEAVE */, 0b111}, topology), 0u);
}

// The same nodes the other way.
TEST(DemotionTargets, MemoryThatTheProgramPutIntoDramStays) {
    Topology topology;
    topology.node_count = 4;
    for (unsigned node = 0; node < 4; ++node) topology.nodes[node] = {.online_memory = true, .allowed = true};
    topology.nodes[2].lower_tier = topology.nodes[3].lower_tier = true;
    EXPECT_EQ(demotion_targets({MPOL_DEFAULT, 0}, topology), 0b1100u);
    EXPECT_EQ(demotion_targets({MPOL_LOCAL, 0}, topology), 0b1100u);
    EXPECT_EQ(demotion_targets({MPOL_PREFERRED, 0}, topology), 0b1100u);
    EXPECT_EQ(demotion_targets({MPOL_BIND, 0b0001}, topology), 0u);
    EXPECT_EQ(demotion_targets({MPOL_BIND, 0b0101}, topology), 0b0100u);
    EXPECT_EQ(demotion_targets({MPOL_PREFERRED, 0b0001}, topology), 0u);
    EXPECT_EQ(demotion_targets({5 /* PREFERRED_MANY */, 0b1010}, topology), 0b1000u);
    EXPECT_EQ(demotion_targets({MPOL_INTERLEAVE, 0b1111}, topology), 0u);
    topology.nodes[2].allowed = false;
    topology.nodes[3].online_memory = false;
    EXPECT_EQ(demotion_targets({MPOL_DEFAULT, 0}, topology), 0u) << "outside the cpuset, or without memory";
}

class AddressSpaceTest : public testing::Test {
protected:
    int refresh() {
        return space.refresh(files, [](uintptr_t begin) -> uint64_t { return begin == 0x30000 ? 0 : 1; });
    }
    FakeFiles files;
    std::vector<AddressRange> storage = std::vector<AddressRange>(4);
    AddressSpace space{storage};
};

TEST_F(AddressSpaceTest, FindsTheRangeOfAnAddress) {
    files.files["/proc/thread-self/maps"] =
        "10000-12000 rw-p 0 00:00 0\n20000-21000 r-xp 0 fe:00 7 /bin/x\n30000-31000 rw-p 0 00:00 0\n";
    ASSERT_EQ(refresh(), 0);
    EXPECT_EQ(space.find(0xffff), nullptr);
    ASSERT_NE(space.find(0x10000), nullptr);
    EXPECT_EQ(space.find(0x11fff)->targets, 1u);
    EXPECT_EQ(space.find(0x12000), nullptr);
    EXPECT_EQ(space.find(0x20000)->targets, 0u) << "a file";
    EXPECT_EQ(space.find(0x30000)->targets, 0u) << "bound by the program";
    EXPECT_EQ(space.find(0x31000), nullptr);
}

TEST_F(AddressSpaceTest, NeighboursThatAnswerAlikeAreOneRange) {
    files.files["/proc/thread-self/maps"] =
        "10000-12000 rw-p 0 00:00 0\n12000-14000 r--p 0 00:00 0\n14000-15000 rw-p 0 fe:00 3 /f\n";
    ASSERT_EQ(refresh(), 0);
    EXPECT_EQ(space.size(), 2u);
    EXPECT_EQ(space.find(0x13000)->begin, 0x10000u);
}

TEST_F(AddressSpaceTest, MoreRangesThanFitAreLeftOutAndCounted) {
    std::string maps;
    for (int i = 1; i <= 6; ++i) maps += std::to_string(i) + "00000-" + std::to_string(i) + "01000 rw-p 0 00:00 0\n";
    files.files["/proc/thread-self/maps"] = maps;
    ASSERT_EQ(refresh(), 0);
    EXPECT_EQ(space.size(), 4u);
    EXPECT_EQ(space.left_out(), 2u);
    EXPECT_EQ(space.find(0x600000), nullptr);
}

TEST_F(AddressSpaceTest, AFailedReadKeepsTheOldPicture) {
    files.files["/proc/thread-self/maps"] = "10000-12000 rw-p 0 00:00 0\n";
    ASSERT_EQ(refresh(), 0);
    files.files.clear();
    EXPECT_LT(refresh(), 0);
    EXPECT_NE(space.find(0x10000), nullptr);
}

}    // namespace
}    // namespace pghot
