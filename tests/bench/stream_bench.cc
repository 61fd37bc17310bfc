// SPDX-License-Identifier: Apache-2.0
// Memory that is used once, and arithmetic that hardly uses any: neither gains from a page that moves. Phase "stream"
// goes over all lines of the memory once, phase "compute" works on a buffer that fits the caches.

#include <vector>

#include <fmt/core.h>

#include "tests/bench/cpus.h"
#include "tests/bench/session.h"

namespace tier_bench {
namespace {

constexpr const char* kName = "stream_bench";
constexpr size_t kBufferBytes = size_t{256} << 10;    // a quarter of the modelled L2

struct StreamOptions {
    Common common;
    StartPlace place;
    int cpu_node = 0;
    uint64_t bytes = 256u << 20;
    uint64_t operations = 400'000'000;
};

void declare(Arguments& arguments, StreamOptions& options) {
    arguments.integer("cpu-node", options.cpu_node, 0, "node whose CPU runs the thread");
    declare(arguments, options.place);
    declare(arguments, options.common);
    arguments.bytes("bytes", options.bytes, "memory that is used once");
    arguments.count("operations", options.operations, "of the phase that computes");
    arguments.rule([&options] { return options.bytes < kPageBytes ? "--bytes: at least a page" : nullptr; });
}

uint64_t use_once(std::span<std::byte> memory) {
    uint64_t sum = 0;
    for (size_t line = 0; line < memory.size(); line += kLineBytes) {
        auto* word = reinterpret_cast<volatile uint64_t*>(&memory[line]);
        if (line / kLineBytes % 2 == 0)
            sum += *word;
        else
            *word = line;
    }
    return sum;
}

uint64_t compute(std::span<std::byte> buffer, uint64_t operations) {
    constexpr uint64_t kOperationsOfLine = 64;
    uint64_t value = 1;
    size_t line = 0;
    for (uint64_t i = 0; i < operations; ++i) {
        if (i % kOperationsOfLine == 0) {
            value ^= *reinterpret_cast<const volatile uint64_t*>(&buffer[line]);
            line = (line + kLineBytes) % buffer.size();
        }
        value = value * 0x9e3779b97f4a7c15ull + i;
        asm volatile("" : "+r"(value));    // each is done
    }
    return value;
}

int run(const StreamOptions& options) {
    const std::vector<int> cpus = cpus_of(options.cpu_node);
    if (cpus.empty()) return fail(kName, fmt::format("node {} has no CPU", options.cpu_node));
    Memory memory(MemoryKind::kHeap, PageSize::kBase, options.bytes + kBufferBytes);
    if (!memory.valid() || !place_memory(memory.bytes(), options.place, options.cpu_node))
        return fail_with_errno(kName, fmt::format("{} bytes on node {}", options.bytes, name_of(options.place)));
    const auto buffer = memory.bytes().first(kBufferBytes), streamed = memory.bytes().subspan(kBufferBytes);
    Session session(options.common, {cpus[0]}, {buffer, streamed},
                    {{"streamed", some_pages(streamed, PlacementWatch::kPagesOfSet), uint64_t{1} << options.cpu_node}});
    if (!session.ready()) return fail(kName, "the thread could not be pinned to its node's CPU");
    uint64_t checksum = 0;
    session.run("stream", [&](size_t) { checksum += use_once(streamed); }, {0});
    session.run("compute", [&](size_t) { checksum += compute(buffer, options.operations); });
    const JsonObject measured = session.finish();
    JsonObject json;
    json.add("workload", "stream").add("bytes", options.bytes).add("operations", options.operations);
    json.add("checksum", checksum);
    return print_result(options.common, json.joined(measured));
}

}    // namespace
}    // namespace tier_bench

int main(int argc, char** argv) {
    tier_bench::StreamOptions options;
    tier_bench::Arguments arguments(tier_bench::kName, "streams over memory once, then computes");
    declare(arguments, options);
    return tier_bench::run_program(tier_bench::kName, arguments, argc, argv, [&] { return tier_bench::run(options); });
}
