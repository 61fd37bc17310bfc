// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/options.h"

#include <getopt.h>

#include <cstdlib>
#include <cstring>
#include <optional>

#include <fmt/core.h>

#include "tests/bench/modelled_time.h"

namespace tier_bench {
namespace {

constexpr const char* kHelp = R"(tier_bench: random accesses to memory that was placed on one NUMA node
  --threads N          threads, pinned to the CPUs of their node (default 1)
  --cpu-node C         node whose CPUs run the threads (default 0)
  --memory-node M      node that holds the memory at the start (default 2); its policy is reset to default then
  --bytes SIZE         memory, all groups together; K, M, G are powers of 1024 (default 128M)
  --accesses COUNT     accesses, all threads together; K, M, G are powers of 1000 (default 10M)
  --seconds S          run for S seconds instead of a fixed count
  --pattern uniform|zipf    how pages are drawn (default uniform); the line within the page is always uniform
  --zipf-exponent E    default 0.99
  --zipf-order scattered|sequential    hot pages anywhere (a fixed permutation) or first (default scattered)
  --groups 1|2         2: group g's threads on node g, each with its own half of the memory (default 1)
  --memory heap|mmap|bss    malloc, a mapping of its own, or a static array (default heap)
  --seed S             default 1
  --model              print the constants of the modelled time as JSON
One JSON object on stdout. Exit status: 0 done, 1 the memory could not be placed or a CPU not be had, 2 usage.
)";

std::optional<uint64_t> parse_scaled(const char* text, uint64_t kilo) {
    char* end = nullptr;
    const double value = std::strtod(text, &end);
    uint64_t scale = 1;
    for (const char suffix : {'K', 'M', 'G'}) {
        scale *= kilo;
        if (*end == suffix && end[1] == 0 && value >= 0)
            return static_cast<uint64_t>(value * static_cast<double>(scale));
    }
    if (end == text || *end != 0 || value < 0) return std::nullopt;
    return static_cast<uint64_t>(value);
}

template <typename Enum>
bool parse_name(const char* text, Enum& out, std::initializer_list<Enum> choices) {
    for (const Enum choice : choices) {
        if (std::strcmp(text, name_of(choice)) != 0) continue;
        out = choice;
        return true;
    }
    return false;
}

bool parse_int(const char* text, int& out, int least) {
    char* end = nullptr;
    const long value = std::strtol(text, &end, 10);
    if (end == text || *end != 0 || value < least || value > 1'000'000) return false;
    out = static_cast<int>(value);
    return true;
}

bool parse_count(const char* text, uint64_t kilo, uint64_t& out) {
    const auto value = parse_scaled(text, kilo);
    if (value) out = *value;
    return value.has_value();
}

bool parse_double(const char* text, double& out) {
    char* end = nullptr;
    out = std::strtod(text, &end);
    return end != text && *end == 0 && out >= 0;
}

enum Option {
    kThreads,
    kCpuNode,
    kMemoryNode,
    kBytes,
    kAccesses,
    kSeconds,
    kPattern,
    kZipfExponent,
    kZipfOrder,
    kGroups,
    kMemory,
    kSeed,
    kModel,
    kShowHelp
};

constexpr option kOptions[] = {
    {"threads", required_argument, nullptr, kThreads},
    {"cpu-node", required_argument, nullptr, kCpuNode},
    {"memory-node", required_argument, nullptr, kMemoryNode},
    {"bytes", required_argument, nullptr, kBytes},
    {"accesses", required_argument, nullptr, kAccesses},
    {"seconds", required_argument, nullptr, kSeconds},
    {"pattern", required_argument, nullptr, kPattern},
    {"zipf-exponent", required_argument, nullptr, kZipfExponent},
    {"zipf-order", required_argument, nullptr, kZipfOrder},
    {"groups", required_argument, nullptr, kGroups},
    {"memory", required_argument, nullptr, kMemory},
    {"seed", required_argument, nullptr, kSeed},
    {"model", no_argument, nullptr, kModel},
    {"help", no_argument, nullptr, kShowHelp},
    {nullptr, 0, nullptr, 0},
};

bool apply(int which, const char* value, Options& options) {
    switch (which) {
        case kThreads:
            return parse_int(value, options.threads, 1);
        case kCpuNode:
            return parse_int(value, options.cpu_node, 0);
        case kMemoryNode:
            return parse_int(value, options.memory_node, 0);
        case kBytes:
            return parse_count(value, 1024, options.bytes);
        case kAccesses:
            return parse_count(value, 1000, options.accesses);
        case kSeconds:
            return parse_double(value, options.seconds);
        case kPattern:
            return parse_name(value, options.pattern, {Pattern::kUniform, Pattern::kZipf});
        case kZipfExponent:
            return parse_double(value, options.zipf_exponent);
        case kZipfOrder:
            return parse_name(value, options.zipf_order, {ZipfOrder::kScattered, ZipfOrder::kSequential});
        case kGroups:
            return parse_int(value, options.groups, 1) && options.groups <= 2;
        case kMemory:
            return parse_name(value, options.memory, {MemoryKind::kMmap, MemoryKind::kHeap, MemoryKind::kBss});
        case kSeed:
            return parse_count(value, 1000, options.seed);
        default:
            return false;
    }
}

const char* complaint(const Options& options) {
    if (options.threads % options.groups != 0) return "--threads must be a multiple of --groups";
    if (options.bytes / 4096 < static_cast<uint64_t>(options.threads)) return "--bytes: at least a page a thread";
    if (options.accesses < static_cast<uint64_t>(options.threads)) return "--accesses: at least one a thread";
    return nullptr;
}

}    // namespace

const char* name_of(Pattern pattern) { return pattern == Pattern::kUniform ? "uniform" : "zipf"; }
const char* name_of(ZipfOrder order) { return order == ZipfOrder::kScattered ? "scattered" : "sequential"; }
const char* name_of(MemoryKind kind) {
    switch (kind) {
        case MemoryKind::kMmap:
            return "mmap";
        case MemoryKind::kHeap:
            return "heap";
        case MemoryKind::kBss:
            break;
    }
    return "bss";
}

Parsed parse_options(int argc, char** argv, Options& options) {
    for (int which; (which = getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
        if (which == kModel) {
            fmt::print("{}\n", model_as_json());
            return Parsed::kDone;
        }
        if (which == kShowHelp) {
            fmt::print("{}", kHelp);
            return Parsed::kDone;
        }
        if (which == '?') return Parsed::kUsageError;
        if (!apply(which, optarg, options)) {
            fmt::print(stderr, "tier_bench: --{}: cannot use '{}'\n", kOptions[which].name, optarg);
            return Parsed::kUsageError;
        }
    }
    if (optind != argc) {
        fmt::print(stderr, "tier_bench: what is '{}'? (--help)\n", argv[optind]);
        return Parsed::kUsageError;
    }
    if (const char* wrong = complaint(options)) {
        fmt::print(stderr, "tier_bench: {}\n", wrong);
        return Parsed::kUsageError;
    }
    return Parsed::kRun;
}

}    // namespace tier_bench
