// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/memory.h"

#include <numaif.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

namespace tier_bench {
namespace {

constexpr size_t kBssBytes = size_t{512} << 20;    // untouched pages of it cost nothing
alignas(kPageBytes) std::byte bss_array[kBssBytes];

std::byte* page_aligned(void* pointer) {
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    return reinterpret_cast<std::byte*>((address + kPageBytes - 1) & ~(kPageBytes - 1));
}

}    // namespace

Memory::Memory(MemoryKind kind, size_t bytes) : kind_(kind), bytes_(bytes / kPageBytes * kPageBytes) {
    switch (kind_) {
        case MemoryKind::kMmap: {
            allocation_bytes_ = bytes_;
            void* mapping = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (mapping == MAP_FAILED) return;
            allocation_ = mapping;
            break;
        }
        case MemoryKind::kHeap:
            allocation_bytes_ = bytes_ + kPageBytes;
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
    base_ = page_aligned(allocation_);
}

Memory::~Memory() {
    if (kind_ == MemoryKind::kMmap && allocation_ != nullptr) munmap(allocation_, allocation_bytes_);
    if (kind_ == MemoryKind::kHeap) std::free(allocation_);
}

bool Memory::place_on(int node) {
    // The published counts are in 4 KiB pages. Failure only means that the kernel has no huge pages.
    madvise(base_, bytes_, MADV_NOHUGEPAGE);
    const unsigned long mask = 1ul << node;
    // BIND, so that a full node is an error here and not a silent other node; the policy is gone before the run.
    if (mbind(base_, bytes_, MPOL_BIND, &mask, sizeof mask * 8, MPOL_MF_MOVE) != 0) return false;
    for (size_t offset = 0; offset < bytes_; offset += kPageBytes) base_[offset] = std::byte{1};
    return mbind(base_, bytes_, MPOL_DEFAULT, nullptr, 0, 0) == 0;
}

std::map<int, uint64_t> pages_per_node(std::span<std::byte> memory) {
    std::map<int, uint64_t> pages;
    constexpr size_t kBatchPages = 4096;
    std::vector<void*> addresses;
    std::vector<int> nodes(kBatchPages);
    for (size_t offset = 0; offset < memory.size();) {
        addresses.clear();
        for (; offset < memory.size() && addresses.size() < kBatchPages; offset += kPageBytes)
            addresses.push_back(&memory[offset]);
        if (move_pages(0, addresses.size(), addresses.data(), nullptr, nodes.data(), 0) != 0) {
            pages[-errno] += addresses.size();
            continue;
        }
        for (size_t i = 0; i < addresses.size(); ++i) ++pages[nodes[i]];
    }
    return pages;
}

}    // namespace tier_bench
