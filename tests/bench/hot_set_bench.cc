// SPDX-License-Identifier: Apache-2.0
// A hot set that moves: a window of the memory takes most accesses for a while, then the next window does. What has
// come home for the window before is of no use any more.

#include <vector>

#include <fmt/core.h>

#include "tests/bench/accesses.h"
#include "tests/bench/cpus.h"
#include "tests/bench/session.h"

namespace tier_bench {
namespace {

constexpr const char* kName = "hot_set_bench";

struct HotSetOptions {
    Common common;
    StartPlace place;
    int cpu_node = 0;
    uint64_t bytes = 256u << 20;
    uint64_t window_bytes = 48u << 20;
    int windows = 3;
    uint64_t accesses = 4'000'000;    // in each window
    int cold_percent = 10;
};

const char* complaint(const HotSetOptions& options) {
    if (options.window_bytes < kPageBytes) return "--window-bytes: at least a page";
    if (options.window_bytes * static_cast<uint64_t>(options.windows) > options.bytes)
        return "--bytes: the windows do not fit";
    if (options.cold_percent > 100) return "--cold-percent: at most 100";
    return nullptr;
}

void declare(Arguments& arguments, HotSetOptions& options) {
    arguments.integer("cpu-node", options.cpu_node, 0, "node whose CPU runs the thread");
    declare(arguments, options.place);
    declare(arguments, options.common);
    arguments.bytes("bytes", options.bytes, "all memory");
    arguments.bytes("window-bytes", options.window_bytes, "the part that is hot at a time");
    arguments.integer("windows", options.windows, 1, "how many windows are hot, one after the other");
    arguments.count("accesses", options.accesses, "in each window");
    arguments.integer("cold-percent", options.cold_percent, 0, "of the accesses that go anywhere");
    arguments.rule([&options] { return complaint(options); });
}

// Windows lie at equal distances, so that all of the memory is between them.
std::vector<std::span<std::byte>> windows_of(const HotSetOptions& options, std::span<std::byte> memory) {
    std::vector<std::span<std::byte>> windows;
    const size_t stride = memory.size() / static_cast<size_t>(options.windows) / kPageBytes * kPageBytes;
    for (int i = 0; i < options.windows; ++i)
        windows.push_back(
            memory.subspan(static_cast<size_t>(i) * stride, options.window_bytes / kPageBytes * kPageBytes));
    return windows;
}

int run(const HotSetOptions& options) {
    const std::vector<int> cpus = cpus_of(options.cpu_node);
    if (cpus.empty()) return fail(kName, fmt::format("node {} has no CPU", options.cpu_node));
    Memory memory(MemoryKind::kHeap, PageSize::kBase, options.bytes);
    if (!memory.valid() || !place_memory(memory.bytes(), options.place, options.cpu_node))
        return fail_with_errno(kName, fmt::format("{} bytes on node {}", options.bytes, name_of(options.place)));
    const auto windows = windows_of(options, memory.bytes());
    std::vector<WatchedSet> sets;
    for (const auto& window : windows)
        sets.push_back({fmt::format("window {}", sets.size() + 1), some_pages(window, PlacementWatch::kPagesOfSet),
                        uint64_t{1} << options.cpu_node});
    Session session(options.common, {cpus[0]}, {memory.bytes()}, std::move(sets));
    if (!session.ready()) return fail(kName, "the thread could not be pinned to its node's CPU");
    uint64_t checksum = 0;
    for (size_t i = 0; i < windows.size(); ++i) {
        AccessLoop loop({windows[i]}, {memory.bytes()}, options.cold_percent / 100.0, options.common.seed * 1000 + i);
        session.run(fmt::format("window {}", i + 1), [&](size_t) { loop.run(options.accesses); }, {i});
        checksum += loop.checksum();
    }
    const JsonObject measured = session.finish();
    JsonObject json;
    json.add("workload", "hot set").add("bytes", options.bytes).add("window_bytes", options.window_bytes);
    json.add("windows", options.windows).add("accesses", options.accesses * windows.size()).add("checksum", checksum);
    return print_result(options.common, json.joined(measured));
}

}    // namespace
}    // namespace tier_bench

int main(int argc, char** argv) {
    tier_bench::HotSetOptions options;
    tier_bench::Arguments arguments(tier_bench::kName, "a window of the memory is hot for a while, then the next one");
    declare(arguments, options);
    return tier_bench::run_program(tier_bench::kName, arguments, argc, argv, [&] { return tier_bench::run(options); });
}
