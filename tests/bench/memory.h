// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace tier_bench {

inline constexpr size_t kPageBytes = 4096;
inline constexpr size_t kLineBytes = 64;
inline constexpr size_t kHugePageBytes = size_t{2} << 20;

enum class MemoryKind { kMmap, kHeap, kBss };
enum class PageSize { kBase, kHuge };

// Where pages lie when the accesses start. Every policy is reset afterwards: they stay there until somebody moves them.
struct StartPlace {
    enum class Kind {
        kNode,          // one node, whatever it takes
        kFirstTouch,    // where the first touch puts them, from a CPU of the node that will use them
        kInterleave,    // in turn over all nodes that have memory
    };
    Kind kind = Kind::kNode;
    int node = 2;
};
bool parse_place(const char* text, StartPlace& place);    // a node number, "touch" or "interleave"
std::string name_of(const StartPlace& place);

// Memory that begins at a page (a huge page for kHuge) and consists of such pages, untouched. Owned by this object; one
// thread makes and destroys it.
class Memory {
public:
    Memory(MemoryKind kind, PageSize pages, size_t bytes);
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    bool valid() const { return base_ != nullptr; }    // else errno says why
    std::span<std::byte> bytes() const { return {base_, bytes_}; }

private:
    MemoryKind kind_;
    size_t bytes_;
    void* allocation_ = nullptr;
    size_t allocation_bytes_ = 0;
    std::byte* base_ = nullptr;
};

// Touches every page of `memory`, which must be whole pages, so that it lies at `place`. `user_node` is the node whose
// CPUs touch. False with errno when the kernel refuses the policy.
bool place_memory(std::span<std::byte> memory, const StartPlace& place, int user_node);

// Where the kernel says each page lies (move_pages as a query), in order; negative values are the kernel's errors.
std::vector<int> nodes_of(std::span<std::byte> memory);
std::map<int, uint64_t> pages_per_node(std::span<const int> nodes);

}    // namespace tier_bench
