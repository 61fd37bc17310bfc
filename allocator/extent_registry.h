// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/base/heap.h"
#include "runtime/base/units.h"

namespace pghot {

// Which addresses jemalloc mapped, with which placement: a two-level table by 2 MiB chunk.
//
//   top_[8192] --> Leaf of 8192 chunks (16 GiB of addresses) --> one 64-bit entry per chunk
//
// Works before constructors (constant-initialised, untouched pages of it cost nothing), from any thread, without a
// lock; changes come from page calls, which run under jemalloc's locks, so nothing here may allocate or wait.
// A plain program has its heap in one or two leaves, which lie inside the object; more are mapped on demand and never
// given back. When the kernel refuses one (RLIMIT_AS), its addresses stay unknown: lookups say "not ours".
//
// An entry knows one run of pages per chunk. Two mappings of ours in a chunk widen the run over the gap between them,
// and a hole cut into its middle is not seen: both are rare (jemalloc keeps its address space) and harmless, as the
// mover asks the kernel about every page before it moves one.
class ExtentRegistry {
public:
    constexpr ExtentRegistry() = default;

    void add(uintptr_t begin, size_t bytes, uint8_t placement, bool pinned);
    void remove(uintptr_t begin, size_t bytes);

    // Contents of the range are gone (purged or freed). The generation of a chunk moves on when at least a quarter of
    // it lies in the range: dropping the heat of a whole chunk for each small purge would lose more than stale heat
    // of a few pages costs (one wasted move).
    void forget_contents(uintptr_t begin, size_t bytes);

    // Marks of page_moves.h on blocks of at least 16 MiB, no two of which begin in one chunk; by the block's owner
    // only.
    bool has_moved_mark(uintptr_t begin) const;
    void set_moved_mark(uintptr_t begin, bool moved);

    HeapExtent find(uintptr_t address) const;

    // Live blocks of at least kMinObjectBytes, noted by whoever allocates, resizes and frees them: the owner of the
    // block. A chunk that lies in one whole knows where it begins and ends. 20 ns and less a chunk.
    static constexpr size_t kMinObjectBytes = 8 * kChunkBytes;
    void add_object(uintptr_t begin, size_t bytes);
    void remove_object(uintptr_t begin, size_t bytes);
    HeapObject find_object(uintptr_t address) const;

    // Calls visit(begin, bytes) for each run of pages with `placement`, in address order, joined over chunks.
    template <typename Visit>
    void for_each_run(uint8_t placement, Visit visit) const;

private:
    static constexpr unsigned kAddressBits =
        47;    // user half of 4-level paging; 5-level addresses are only given on request
    static constexpr unsigned kChunkBits = 21;
    static constexpr unsigned kLeafBits = 13;
    static constexpr size_t kLeafChunks = size_t{1} << kLeafBits;
    static constexpr size_t kLeaves = size_t{1} << (kAddressBits - kChunkBits - kLeafBits);
    static constexpr size_t kBuiltInLeaves = 2;
    static constexpr size_t kForgetBytes = kChunkBytes / 4;

    // What an entry's 64 bits say. Zero: not ours, never was.
    struct Chunk {
        uint32_t generation = 0;
        uint16_t first_page = 0;
        uint16_t end_page = 0;    // one past the last; 0: not ours
        uint8_t placement = 0;
        bool pinned = false;
        bool moved = false;    // a block that begins here was moved here
        static Chunk unpack(uint64_t bits);
        uint64_t pack() const;
    };
    using Entry = std::atomic<uint64_t>;
    struct Leaf {
        std::array<Entry, kLeafChunks> entries{};
        // chunks back to the first of the object 32 | chunks of it 32; 0: none
        std::array<Entry, kLeafChunks> objects{};
    };

    Leaf* leaf_of(uintptr_t address) const;
    static size_t index_in_leaf(uintptr_t address) { return (address >> kChunkBits) & (kLeafChunks - 1); }
    Entry* entry_of(uintptr_t address) const;
    Entry* make_entry(uintptr_t address);
    Leaf* make_leaf(std::atomic<Leaf*>& slot);
    Leaf* new_leaf();
    template <typename Change>
    static void update(Entry& entry, Change change);

    std::array<std::atomic<Leaf*>, kLeaves> top_{};
    std::atomic<size_t> built_in_used_{0};    // beside the end of top_, where a heap usually is: one page less to touch
    std::array<Leaf, kBuiltInLeaves> built_in_{};
};

extern ExtentRegistry extent_registry;

template <typename Visit>
void ExtentRegistry::for_each_run(uint8_t placement, Visit visit) const {
    uintptr_t begin = 0, end = 0;
    for (size_t at = 0; at < kLeaves; ++at) {
        const Leaf* leaf = top_[at].load(std::memory_order_acquire);
        if (leaf == nullptr) continue;
        for (size_t i = 0; i < kLeafChunks; ++i) {
            const Chunk chunk = Chunk::unpack(leaf->entries[i].load(std::memory_order_seq_cst));
            if (chunk.end_page == 0 || chunk.placement != placement) continue;
            const uintptr_t base = ((at << kLeafBits) + i) << kChunkBits;
            const uintptr_t run_begin = base + chunk.first_page * kPageBytes;
            if (run_begin != end) {
                if (end != begin) visit(begin, end - begin);
                begin = run_begin;
            }
            end = base + chunk.end_page * kPageBytes;
        }
    }
    if (end != begin) visit(begin, end - begin);
}

}    // namespace pghot
