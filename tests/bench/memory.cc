// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/memory.h"

#include <numa.h>
#include <numaif.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "tests/bench/cpus.h"

namespace tier_bench {
namespace {

constexpr size_t kBssBytes = size_t{512} << 20;                         // untouched pages of it cost nothing
alignas(kPageBytes) std::byte bss_array[kBssBytes + kHugePageBytes];    // the rest is for aligning

std::byte* aligned(void* pointer, size_t to) {
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    return reinterpret_cast<std::byte*>((address + to - 1) & ~(to - 1));
}

unsigned long nodes_with_memory() {
    unsigned long nodes = 0;
    for (int node = 0; node <= numa_max_node() && node < 64; ++node)
        if (numa_node_size64(node, nullptr) > 0) nodes |= 1ul << node;
    return nodes;
}

bool set_policy(std::span<std::byte> memory, int mode, unsigned long nodes) {
    return mbind(memory.data(), memory.size(), mode, nodes == 0 ? nullptr : &nodes, nodes == 0 ? 0 : 64,
                 nodes == 0 ? 0 : MPOL_MF_MOVE) == 0;
}

}    // namespace

bool parse_place(const char* text, StartPlace& place) {
    if (std::strcmp(text, "touch") == 0) {
        place = {StartPlace::Kind::kFirstTouch, 0};
        return true;
    }
    if (std::strcmp(text, "interleave") == 0) {
        place = {StartPlace::Kind::kInterleave, 0};
        return true;
    }
    char* end = nullptr;
    const long node = std::strtol(text, &end, 10);
    if (end == text || *end != 0 || node < 0 || node > 63) return false;
    place = {StartPlace::Kind::kNode, static_cast<int>(node)};
    return true;
}

std::string name_of(const StartPlace& place) {
    switch (place.kind) {
        case StartPlace::Kind::kFirstTouch:
            return "touch";
        case StartPlace::Kind::kInterleave:
            return "interleave";
        case StartPlace::Kind::kNode:
            break;
    }
    return std::to_string(place.node);
}

Memory::Memory(MemoryKind kind, PageSize pages, size_t bytes) : kind_(kind) {
    const size_t page = pages == PageSize::kHuge ? kHugePageBytes : kPageBytes;
    bytes_ = bytes / page * page;
    allocation_bytes_ = bytes_ + page;
    switch (kind_) {
        case MemoryKind::kMmap: {
            if (pages == PageSize::kBase) allocation_bytes_ = bytes_;    // a mapping of just this size, easy to find
            void* mapping =
                mmap(nullptr, allocation_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (mapping == MAP_FAILED) return;
            allocation_ = mapping;
            break;
        }
        case MemoryKind::kHeap:
            allocation_ = std::malloc(allocation_bytes_);
            break;
        case MemoryKind::kBss:
            if (bytes_ > kBssBytes)
                errno = ENOMEM;
            else
                allocation_ = bss_array;
            break;
    }
    if (allocation_ == nullptr) return;
    base_ = aligned(allocation_, page);
    // The published counts are in 4 KiB pages. Failure only means that the kernel has no huge pages.
    madvise(base_, bytes_, pages == PageSize::kHuge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

Memory::~Memory() {
    if (kind_ == MemoryKind::kMmap && allocation_ != nullptr) munmap(allocation_, allocation_bytes_);
    if (kind_ == MemoryKind::kHeap) std::free(allocation_);
}

bool place_memory(std::span<std::byte> memory, const StartPlace& place, int user_node) {
    const OnNode there(user_node);
    const bool by_policy = place.kind != StartPlace::Kind::kFirstTouch;
    // BIND, so that a full node ends the program and is not silently another node.
    if (place.kind == StartPlace::Kind::kNode && !set_policy(memory, MPOL_BIND, 1ul << place.node)) return false;
    if (place.kind == StartPlace::Kind::kInterleave && !set_policy(memory, MPOL_INTERLEAVE, nodes_with_memory()))
        return false;
    for (size_t offset = 0; offset < memory.size(); offset += kPageBytes) memory[offset] = std::byte{1};
    return !by_policy || set_policy(memory, MPOL_DEFAULT, 0);
}

std::vector<int> nodes_of(std::span<std::byte> memory) {
    constexpr size_t kBatchPages = 4096;
    std::vector<int> nodes(memory.size() / kPageBytes);
    std::vector<void*> addresses;
    for (size_t first = 0; first < nodes.size(); first += addresses.size()) {
        addresses.clear();
        for (size_t page = first; page < std::min(nodes.size(), first + kBatchPages); ++page)
            addresses.push_back(&memory[page * kPageBytes]);
        if (move_pages(0, addresses.size(), addresses.data(), nullptr, &nodes[first], 0) != 0)
            std::fill_n(&nodes[first], addresses.size(), -errno);
    }
    return nodes;
}

std::map<int, uint64_t> pages_per_node(std::span<const int> nodes) {
    std::map<int, uint64_t> pages;
    for (const int node : nodes) ++pages[node];
    return pages;
}

}    // namespace tier_bench
