// SPDX-License-Identifier: Apache-2.0
// Fills a node until so much of it is left free, says so, and holds the memory until its standard input ends: what
// another program finds of that node is then known.

#include <numa.h>
#include <numaif.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <string>

#include <fmt/core.h>

#include "tests/bench/session.h"

namespace tier_bench {
namespace {

constexpr const char* kName = "memory_hog";

struct HogOptions {
    int node = 0;
    uint64_t leave = 256u << 20;
    bool lock = false;
};

uint64_t free_bytes(int node) {
    std::ifstream file(fmt::format("/sys/devices/system/node/node{}/meminfo", node));
    for (std::string word; file >> word;) {
        uint64_t kib = 0;
        if (word == "MemFree:" && file >> kib) return kib << 10;
    }
    return 0;
}

// Touches huge pages, where there are, until no more than `leave` is free. Bytes held.
size_t fill(std::span<std::byte> memory, const HogOptions& options) {
    size_t held = 0;
    while (held + kHugePageBytes <= memory.size() && free_bytes(options.node) >= options.leave + kHugePageBytes) {
        // Not one by one: reading what is free costs more than a page.
        const uint64_t spare = free_bytes(options.node) - options.leave;
        const size_t end = std::min(memory.size(), held + spare / 2 / kHugePageBytes * kHugePageBytes + kHugePageBytes);
        for (; held < end; held += kPageBytes) memory[held] = std::byte{1};
    }
    return held;
}

int run(const HogOptions& options) {
    const long long size = numa_node_size64(options.node, nullptr);
    if (size <= 0) return fail(kName, fmt::format("node {} has no memory", options.node));
    Memory memory(MemoryKind::kMmap, PageSize::kHuge, static_cast<size_t>(size));
    const unsigned long mask = 1ul << options.node;
    if (!memory.valid() || mbind(memory.bytes().data(), memory.bytes().size(), MPOL_BIND, &mask, 64, 0) != 0)
        return fail_with_errno(kName, fmt::format("memory of node {}", options.node));
    const size_t held = fill(memory.bytes(), options);
    if (options.lock && mlock(memory.bytes().data(), held) != 0) return fail_with_errno(kName, "mlock");
    fmt::print("{{\"node\":{},\"held_bytes\":{},\"free_bytes\":{}}}\n", options.node, held, free_bytes(options.node));
    std::fflush(stdout);
    char byte = 0;
    ssize_t count = 0;
    do count = read(STDIN_FILENO, &byte, 1);
    while (count > 0 || (count < 0 && errno == EINTR));
    return 0;
}

}    // namespace
}    // namespace tier_bench

int main(int argc, char** argv) {
    tier_bench::HogOptions options;
    tier_bench::Arguments arguments(tier_bench::kName, "holds a node's memory until its standard input ends");
    arguments.integer("node", options.node, 0, "whose memory");
    arguments.bytes("leave", options.leave, "what is to stay free");
    arguments.flag("lock", options.lock, "lock the memory, so that the kernel cannot move it away");
    return tier_bench::run_program(tier_bench::kName, arguments, argc, argv, [&] { return tier_bench::run(options); });
}
