// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel/topology.h"

#include <algorithm>
#include <charconv>

#include "runtime/kernel/text.h"

namespace pghot {
namespace {

constexpr const char* kNodeFolder = "/sys/devices/system/node/";
constexpr const char* kTierFolder = "/sys/devices/virtual/memory_tiering";

class Path {
public:
    template <typename... Parts>
    explicit Path(const Parts&... parts) {
        char* end = text_;
        ((end = append(end, parts)), ...);
        *end = '\0';
    }
    const char* c_str() const { return text_; }

private:
    char* append(char* end, std::string_view part) {
        const size_t room = static_cast<size_t>(text_ + sizeof text_ - 1 - end);
        return std::copy_n(part.data(), std::min(room, part.size()), end);
    }
    char* append(char* end, unsigned number) { return std::to_chars(end, text_ + sizeof text_ - 1, number).ptr; }
    char text_[160];
};

void read_list(FileSystem& files, const char* path, uint32_t limit, FunctionRef<void(uint32_t)> visit) {
    char buffer[8192];    // 4096 CPUs listed one by one with commas would need more, but firmware numbers in runs
    for_each_in_list(files.first_line(path, buffer), limit, visit);
}

// "Node 0 MemTotal:  1234 kB" -> bytes.
uint64_t meminfo_field(FileSystem& files, NodeId node, std::string_view field) {
    char buffer[512];
    uint64_t kib = 0;
    const Path path(kNodeFolder, "node", static_cast<unsigned>(node.value), "/meminfo");
    files.lines(path.c_str(), buffer, [&](std::string_view line) {
        const size_t at = line.find(field);
        if (at == std::string_view::npos) return true;
        line.remove_prefix(at + field.size());
        skip_spaces(line);
        take_number(line, kib);
        return false;
    });
    return kib * 1024;
}

void read_distances(FileSystem& files, unsigned node, Topology& out) {
    char buffer[1024];
    const Path path(kNodeFolder, "node", node, "/distance");
    std::string_view row = files.first_line(path.c_str(), buffer);
    // The row has one column per online node, in the order of their numbers.
    for (unsigned column = 0; column < out.node_count; ++column) {
        if (!out.nodes[column].online_memory && !out.nodes[column].has_cpus) continue;
        skip_spaces(row);
        uint8_t distance = 0;
        if (!take_number(row, distance)) return;
        out.distance[node][column] = distance;
    }
}

// HMAT figure of the best initiators that are CPUs (class 1); kernels before 5.19 only have class 0.
uint32_t read_latency(FileSystem& files, unsigned node) {
    for (const char* access : {"/access1", "/access0"}) {
        char buffer[64];
        const Path path(kNodeFolder, "node", node, access, "/initiators/read_latency");
        std::string_view line = files.first_line(path.c_str(), buffer);
        uint32_t latency = 0;
        if (take_number(line, latency) && latency > 0) return latency;
    }
    return 0;
}

void read_tiers(FileSystem& files, Topology& out) {
    files.list(kTierFolder, [&](std::string_view name) {
        constexpr std::string_view kPrefix = "memory_tier";
        if (!name.starts_with(kPrefix)) return;
        std::string_view digits = name;
        digits.remove_prefix(kPrefix.size());
        int16_t tier = 0;
        if (!take_number(digits, tier) || !digits.empty()) return;
        const Path path(kTierFolder, "/", name, "/nodelist");
        read_list(files, path.c_str(), kMaxNodes, [&](uint32_t node) { out.nodes[node].memory_tier = tier; });
    });
}

void read_nodes(FileSystem& files, uint64_t allowed, Topology& out) {
    const auto seen = [&](uint32_t node) {
        out.node_count = std::max(out.node_count, static_cast<uint16_t>(node + 1));
        out.nodes[node].allowed = (allowed >> node & 1) != 0;
    };
    read_list(files, Path(kNodeFolder, "has_memory").c_str(), kMaxNodes, [&](uint32_t node) {
        seen(node);
        out.nodes[node].online_memory = true;
    });
    read_list(files, Path(kNodeFolder, "has_cpu").c_str(), kMaxNodes, [&](uint32_t node) {
        seen(node);
        out.nodes[node].has_cpus = true;
    });
}

void read_cpus(FileSystem& files, unsigned node, Topology& out) {
    const Path path(kNodeFolder, "node", node, "/cpulist");
    read_list(files, path.c_str(), kMaxCpus, [&](uint32_t cpu) {
        out.node_of_cpu[cpu] = static_cast<int16_t>(node);
        out.cpu_count = std::max(out.cpu_count, static_cast<uint16_t>(cpu + 1));
    });
}

// The slowest figure among the nodes that have CPUs.
template <typename Figure>
auto slowest_with_cpus(const Topology& topology, Figure figure) {
    auto slowest = figure(0U);
    bool first = true;
    for (unsigned node = 0; node < topology.node_count; ++node) {
        if (!topology.nodes[node].has_cpus) continue;
        slowest = first ? figure(node) : std::max(slowest, figure(node));
        first = false;
    }
    return slowest;
}

// Distance to `node` as the nearest CPU node sees it; 0 where no CPU node tells.
unsigned distance_from_cpus(const Topology& topology, unsigned node) {
    unsigned nearest = 0;
    for (unsigned from = 0; from < topology.node_count; ++from) {
        const unsigned distance = topology.distance[from][node];
        if (!topology.nodes[from].has_cpus || distance == 0) continue;
        nearest = nearest == 0 ? distance : std::min(nearest, distance);
    }
    return nearest;
}

// The longest way between two nodes that both have CPUs: memory no farther than that is ordinary remote DRAM.
unsigned longest_cpu_distance(const Topology& topology) {
    unsigned longest = 0;
    for (unsigned from = 0; from < topology.node_count; ++from)
        for (unsigned to = 0; to < topology.node_count; ++to)
            if (topology.nodes[from].has_cpus && topology.nodes[to].has_cpus)
                longest = std::max<unsigned>(longest, topology.distance[from][to]);
    return longest;
}

struct Verdict {
    bool lower = false;
    TierEvidence evidence = TierEvidence::kNone;
};

Verdict judge(const Topology& topology, unsigned node) {
    const Node& candidate = topology.nodes[node];
    const int cpu_tier = slowest_with_cpus(topology, [&](unsigned n) { return int{topology.nodes[n].memory_tier}; });
    // Equal says nothing: before 6.12 every node present at boot is in the tier of DRAM.
    if (candidate.memory_tier >= 0 && cpu_tier >= 0 && candidate.memory_tier != cpu_tier)
        return {candidate.memory_tier > cpu_tier, TierEvidence::kMemoryTier};

    const uint32_t cpu_latency =
        slowest_with_cpus(topology, [&](unsigned n) { return topology.nodes[n].read_latency_ns; });
    if (candidate.read_latency_ns > 0 && cpu_latency > 0 && candidate.read_latency_ns != cpu_latency)
        return {candidate.read_latency_ns > cpu_latency, TierEvidence::kHmat};

    const unsigned distance = distance_from_cpus(topology, node);
    return {distance > longest_cpu_distance(topology), TierEvidence::kDistance};
}

void find_lower_tier(const TierOverrides& overrides, Topology& out) {
    for (unsigned node = 0; node < out.node_count; ++node) {
        const uint64_t bit = 1ull << node;
        if (!out.nodes[node].online_memory || (overrides.top_nodes & bit) != 0) continue;
        Verdict verdict{(overrides.lower_nodes & bit) != 0, TierEvidence::kUser};
        if (overrides.lower_nodes == 0) verdict = out.nodes[node].has_cpus ? Verdict{} : judge(out, node);
        if (!verdict.lower) continue;
        out.nodes[node].lower_tier = true;
        out.evidence = verdict.evidence;
    }
}

}    // namespace

void read_topology(FileSystem& files, uint64_t allowed, const TierOverrides& overrides, Topology& out) {
    out = Topology{};
    out.node_of_cpu.fill(-1);
    read_nodes(files, allowed, out);
    for (unsigned node = 0; node < out.node_count; ++node) {
        if (out.nodes[node].has_cpus) read_cpus(files, node, out);
        if (out.nodes[node].has_cpus) read_distances(files, node, out);
        if (!out.nodes[node].online_memory) continue;
        out.nodes[node].total_bytes = meminfo_field(files, NodeId{static_cast<int16_t>(node)}, "MemTotal:");
        out.nodes[node].read_latency_ns = read_latency(files, node);
    }
    read_tiers(files, out);
    find_lower_tier(overrides, out);
}

uint64_t node_free_bytes(FileSystem& files, NodeId node) { return meminfo_field(files, node, "MemFree:"); }

void read_low_watermarks(FileSystem& files, std::span<uint64_t> bytes) {
    std::fill(bytes.begin(), bytes.end(), uint64_t{0});
    char buffer[512];
    size_t node = bytes.size();    // of the zone that the lines are about
    files.lines("/proc/zoneinfo", buffer, [&](std::string_view line) {
        uint64_t pages = 0;
        if (line.starts_with("Node ")) {
            line.remove_prefix(5);
            if (!take_number(line, node)) node = bytes.size();
            return true;
        }
        skip_spaces(line);
        if (node >= bytes.size() || !line.starts_with("low ")) return true;
        line.remove_prefix(4);
        skip_spaces(line);
        if (take_number(line, pages)) bytes[node] += pages * kPageBytes;
        return true;
    });
}

uint64_t node_available_bytes(FileSystem& files, NodeId node) {
    return node_free_bytes(files, node) + meminfo_field(files, node, "Inactive(file):");
}

}    // namespace pghot
