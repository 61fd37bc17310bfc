// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "runtime/kernel/text.h"
#include "runtime/kernel/topology.h"
#include "tests/unit/fake_files.h"

namespace pghot {
namespace {

constexpr uint64_t kAll = ~0ull;

// The published machine: two DRAM nodes, one CXL node whose own row says "unreachable".
FakeFiles cxl_machine() {
    FakeFiles files;
    files.add_node(0, "0-1", "10 12 50", 3072);
    files.add_node(1, "2-3", "12 10 50", 3072);
    files.add_node(2, "", "255 255 10", 2048);
    return files;
}

Topology read(FakeFiles& files, TierOverrides overrides = {}, uint64_t allowed = kAll) {
    Topology topology;
    read_topology(files, allowed, overrides, topology);
    return topology;
}

TEST(Topology, MemoryTierTellsTheLowerTier) {
    FakeFiles files = cxl_machine();
    files.add_tier(4, "0-1");
    files.add_tier(22, "2");
    const Topology topology = read(files);
    EXPECT_EQ(topology.node_count, 3);
    EXPECT_EQ(topology.cpu_count, 4);
    EXPECT_FALSE(topology.is_lower(NodeId{0}));
    EXPECT_FALSE(topology.is_lower(NodeId{1}));
    EXPECT_TRUE(topology.is_lower(NodeId{2}));
    EXPECT_EQ(topology.evidence, TierEvidence::kMemoryTier);
    EXPECT_EQ(topology.nodes[2].total_bytes, 2048 * kMiB);
}

TEST(Topology, CpusBelongToTheirNodes) {
    FakeFiles files = cxl_machine();
    const Topology topology = read(files);
    EXPECT_EQ(topology.node_of(1), NodeId{0});
    EXPECT_EQ(topology.node_of(2), NodeId{1});
    EXPECT_FALSE(topology.node_of(4).valid());
    EXPECT_FALSE(topology.node_of(1u << 20).valid());
}

// Linux 6.1 puts every node that is there at boot into the tier of DRAM.
TEST(Topology, OneTierForAllFallsBackToDistance) {
    FakeFiles files = cxl_machine();
    files.add_tier(4, "0-2");
    const Topology topology = read(files);
    EXPECT_TRUE(topology.is_lower(NodeId{2}));
    EXPECT_EQ(topology.evidence, TierEvidence::kDistance);
}

TEST(Topology, HmatLatencyGoesBeforeDistance) {
    FakeFiles files = cxl_machine();
    for (auto [node, latency] : {std::pair{0, "100"}, {1, "100"}, {2, "300"}})
        files.files["/sys/devices/system/node/node" + std::to_string(node) + "/access1/initiators/read_latency"] =
            latency;
    const Topology topology = read(files);
    EXPECT_TRUE(topology.is_lower(NodeId{2}));
    EXPECT_EQ(topology.evidence, TierEvidence::kHmat);
}

// HBM has no CPUs either, and is faster than DRAM.
TEST(Topology, FastMemoryWithoutCpusIsNotTheLowerTier) {
    FakeFiles files;
    files.add_node(0, "0-1", "10 21 13 23", 3072);
    files.add_node(1, "2-3", "21 10 23 13", 3072);
    files.add_node(2, "", "13 23 10 23", 1024);
    files.add_node(3, "", "23 13 23 10", 1024);
    files.add_tier(4, "0-1");
    files.add_tier(3, "2-3");
    EXPECT_FALSE(read(files).has_lower_tier());
    FakeFiles untold = files;
    std::erase_if(untold.files,
                  [](const auto& file) { return file.first.find("memory_tiering") != std::string::npos; });
    EXPECT_FALSE(read(untold).has_lower_tier()) << "nearer than the other socket's DRAM";
}

TEST(Topology, OneNodeHasOneTier) {
    FakeFiles files;
    files.add_node(0, "0-1", "10", 24576);
    const Topology topology = read(files);
    EXPECT_FALSE(topology.has_lower_tier());
    EXPECT_EQ(topology.evidence, TierEvidence::kNone);
    EXPECT_TRUE(topology.is_top(NodeId{0}));
}

TEST(Topology, TwoSocketsWithoutCxlHaveOneTier) {
    FakeFiles files;
    files.add_node(0, "0-1", "10 32", 3072);
    files.add_node(1, "2-3", "32 10", 3072);
    EXPECT_FALSE(read(files).has_lower_tier());
}

TEST(Topology, TheUserHasTheLastWord) {
    FakeFiles files = cxl_machine();
    files.add_tier(4, "0-1");
    files.add_tier(22, "2");
    Topology topology = read(files, {.lower_nodes = 1u << 1, .top_nodes = 0});
    EXPECT_TRUE(topology.is_lower(NodeId{1}));
    EXPECT_FALSE(topology.is_lower(NodeId{2}));
    EXPECT_EQ(topology.evidence, TierEvidence::kUser);
    topology = read(files, {.lower_nodes = 0, .top_nodes = 1u << 2});
    EXPECT_FALSE(topology.has_lower_tier());
}

TEST(Topology, NodesOutsideTheCpusetAreNoTargets) {
    FakeFiles files = cxl_machine();
    const Topology topology = read(files, {}, 0b101);
    EXPECT_TRUE(topology.is_top(NodeId{0}));
    EXPECT_FALSE(topology.is_top(NodeId{1}));
    EXPECT_TRUE(topology.is_lower(NodeId{2}));
}

TEST(Topology, AMachineWithoutSysHasNoNodes) {
    FakeFiles files;
    const Topology topology = read(files);
    EXPECT_EQ(topology.node_count, 0);
    EXPECT_FALSE(topology.has_lower_tier());
}

// A hole in the numbering: the distance row has one column for each node that is there.
TEST(Topology, DistancesSkipMissingNodes) {
    FakeFiles files;
    files.add_node(0, "0-1", "10 50", 3072);
    files.add_node(4, "", "50 10", 1024);
    const Topology topology = read(files);
    EXPECT_EQ(topology.distance[0][4], 50);
    EXPECT_TRUE(topology.is_lower(NodeId{4}));
}

TEST(Topology, FreeMemoryIsReadInBytes) {
    FakeFiles files = cxl_machine();
    EXPECT_EQ(node_free_bytes(files, NodeId{0}), 1536 * kMiB);
    EXPECT_EQ(node_free_bytes(files, NodeId{9}), 0u);
}

TEST(Topology, FilePagesThatWereNotUsedLatelyAreAvailable) {
    FakeFiles files;
    files.files["/sys/devices/system/node/node0/meminfo"] =
        "Node 0 MemFree:         1024 kB\nNode 0 Active(file):    8192 kB\nNode 0 Inactive(file):  2048 kB\n";
    EXPECT_EQ(node_available_bytes(files, NodeId{0}), 3 * kMiB);
    EXPECT_EQ(node_available_bytes(files, NodeId{1}), 0u);
}

std::string listed(std::string_view text, bool& good) {
    std::string out;
    good = for_each_in_list(text, 64, [&](uint32_t n) { out += std::to_string(n) + " "; });
    return out;
}

TEST(KernelList, ReadsRangesAndRefusesGarbage) {
    bool good = false;
    EXPECT_EQ(listed("0-2,5\n", good), "0 1 2 5 ");
    EXPECT_TRUE(good);
    EXPECT_EQ(listed("", good), "");
    EXPECT_TRUE(good);
    EXPECT_EQ(listed("62-4294967295", good), "62 63 ");
    EXPECT_TRUE(good);
    for (const char* bad : {"x", "1-", "2-1", "1,", "1;2", "-1", "1,,2"}) {
        listed(bad, good);
        EXPECT_FALSE(good) << bad;
    }
}

TEST(LowWatermark, IsTheSumOfANodesZones) {
    FakeFiles files;
    files.files["/proc/zoneinfo"] =
        "Node 0, zone      DMA\n  per-node stats\n      nr_low 9\n  pages free     3840\n        min      66\n"
        "        low      82\n        high     98\nNode 0, zone   Normal\n  pages free     1000\n        low      "
        "1000\n"
        "Node 1, zone   Normal\n        low      500\nNode 7, zone   Normal\n        low      9\n";
    std::array<uint64_t, 3> bytes{1, 1, 1};
    read_low_watermarks(files, bytes);
    EXPECT_EQ(bytes[0], 1082 * kPageBytes);
    EXPECT_EQ(bytes[1], 500 * kPageBytes);
    EXPECT_EQ(bytes[2], 0u);
    files.files.clear();
    read_low_watermarks(files, bytes);
    EXPECT_EQ(bytes[0], 0u);
}

}    // namespace
}    // namespace pghot
