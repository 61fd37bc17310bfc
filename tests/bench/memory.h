// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "tests/bench/options.h"

namespace tier_bench {

inline constexpr size_t kPageBytes = 4096;

// Page-aligned memory in base pages. Owned by this object; one thread makes and destroys it.
class Memory {
public:
    Memory(MemoryKind kind, size_t bytes);
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    bool valid() const { return base_ != nullptr; }
    std::span<std::byte> bytes() const { return {base_, bytes_}; }

    // Binds the memory to the node, touches every page, and resets the policy to default: the pages stay there until
    // somebody moves them. False with errno when the node cannot be bound.
    bool place_on(int node);

private:
    MemoryKind kind_;
    size_t bytes_;
    void* allocation_ = nullptr;
    size_t allocation_bytes_ = 0;
    std::byte* base_ = nullptr;
};

// Where the kernel says each page lies (move_pages as a query): node -> pages; negative keys are the kernel's errors.
std::map<int, uint64_t> pages_per_node(std::span<std::byte> memory);

}    // namespace tier_bench
