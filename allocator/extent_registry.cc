// SPDX-License-Identifier: Apache-2.0
#include "allocator/extent_registry.h"

#include <sys/mman.h>

#include <algorithm>

namespace pghot {

constinit ExtentRegistry extent_registry;

// generation 32 | placement 8 | end page 10 | first page 9 | three bits spare | moved 1 | pinned 1.
ExtentRegistry::Chunk ExtentRegistry::Chunk::unpack(uint64_t bits) {
    Chunk chunk;
    chunk.generation = static_cast<uint32_t>(bits >> 32);
    chunk.placement = static_cast<uint8_t>(bits >> 24);
    chunk.end_page = static_cast<uint16_t>((bits >> 14) & 0x3ff);
    chunk.first_page = static_cast<uint16_t>((bits >> 5) & 0x1ff);
    chunk.moved = (bits & 2) != 0;
    chunk.pinned = (bits & 1) != 0;
    return chunk;
}

uint64_t ExtentRegistry::Chunk::pack() const {
    return (uint64_t{generation} << 32) | (uint64_t{placement} << 24) | (uint64_t{end_page} << 14) |
           (uint64_t{first_page} << 5) | (moved ? 2 : 0) | (pinned ? 1 : 0);
}

namespace {

// The pages of [begin, end) that lie in the chunk at `chunk`.
struct PagesInChunk {
    uint16_t first;
    uint16_t end;
    PagesInChunk(uintptr_t chunk, uintptr_t begin, uintptr_t range_end)
        : first(static_cast<uint16_t>((std::max(chunk, begin) - chunk) / kPageBytes)),
          end(static_cast<uint16_t>((std::min(chunk + kChunkBytes, range_end) - chunk + kPageBytes - 1) / kPageBytes)) {
    }
    size_t bytes() const { return (end - first) * kPageBytes; }
};

}    // namespace

ExtentRegistry::Leaf* ExtentRegistry::leaf_of(uintptr_t address) const {
    if (address >> kAddressBits != 0) return nullptr;
    // Acquire: pairs with the release in make_leaf, so that a leaf is seen zeroed.
    return top_[address >> (kChunkBits + kLeafBits)].load(std::memory_order_acquire);
}

ExtentRegistry::Entry* ExtentRegistry::entry_of(uintptr_t address) const {
    Leaf* leaf = leaf_of(address);
    return leaf == nullptr ? nullptr : &leaf->entries[index_in_leaf(address)];
}

// Memory that is about to be written is not read first: the kernel would lend its zero page and fault again, which a
// short-lived process notices.
ExtentRegistry::Entry* ExtentRegistry::make_entry(uintptr_t address) {
    if (address >> kAddressBits != 0) return nullptr;
    std::atomic<Leaf*>& slot = top_[address >> (kChunkBits + kLeafBits)];
    Leaf* leaf = slot.fetch_add(0, std::memory_order_acquire);
    if (leaf == nullptr) leaf = make_leaf(slot);
    return leaf == nullptr ? nullptr : &leaf->entries[index_in_leaf(address)];
}

ExtentRegistry::Leaf* ExtentRegistry::make_leaf(std::atomic<Leaf*>& slot) {
    Leaf* leaf = new_leaf();
    if (leaf == nullptr) return nullptr;
    Leaf* present = nullptr;
    if (slot.compare_exchange_strong(present, leaf, std::memory_order_release, std::memory_order_acquire)) return leaf;
    // Another thread was first. A built-in leaf is lost then (64 KiB, untouched); a mapped one goes back.
    const bool built_in = leaf >= built_in_.data() && leaf < built_in_.data() + kBuiltInLeaves;
    if (!built_in) munmap(leaf, sizeof(Leaf));
    return present;
}

ExtentRegistry::Leaf* ExtentRegistry::new_leaf() {
    if (built_in_used_.load(std::memory_order_relaxed) < kBuiltInLeaves) {
        const size_t index = built_in_used_.fetch_add(1, std::memory_order_relaxed);
        if (index < kBuiltInLeaves) return &built_in_[index];
    }
    void* at = mmap(nullptr, sizeof(Leaf), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? nullptr : static_cast<Leaf*>(at);    // zero pages are valid empty entries
}

template <typename Change>
void ExtentRegistry::update(Entry& entry, Change change) {
    uint64_t seen = entry.fetch_add(0, std::memory_order_relaxed);    // see make_entry
    for (;;) {
        Chunk chunk = Chunk::unpack(seen);
        change(chunk);
        // Sequentially consistent: placement nodes that become known later (apply_to_existing) are either seen by the
        // mapping that registers itself here, or see it.
        if (entry.compare_exchange_weak(seen, chunk.pack(), std::memory_order_seq_cst, std::memory_order_relaxed))
            return;
    }
}

void ExtentRegistry::add(uintptr_t begin, size_t bytes, uint8_t placement, bool pinned) {
    const uintptr_t end = begin + bytes;
    for (uintptr_t chunk = chunk_of(begin); chunk < end; chunk += kChunkBytes) {
        Entry* entry = make_entry(chunk);
        if (entry == nullptr) continue;
        const PagesInChunk pages(chunk, begin, end);
        update(*entry, [&](Chunk& known) {
            const bool shared = known.end_page != 0;
            known.first_page = shared ? std::min(known.first_page, pages.first) : pages.first;
            known.end_page = shared ? std::max(known.end_page, pages.end) : pages.end;
            known.placement = placement;
            known.pinned = pinned;
        });
    }
}

void ExtentRegistry::remove(uintptr_t begin, size_t bytes) {
    const uintptr_t end = begin + bytes;
    for (uintptr_t chunk = chunk_of(begin); chunk < end; chunk += kChunkBytes) {
        Entry* entry = entry_of(chunk);
        if (entry == nullptr) continue;
        const PagesInChunk pages(chunk, begin, end);
        update(*entry, [&](Chunk& known) {
            ++known.generation;
            const bool reaches_front = pages.first <= known.first_page;
            const bool reaches_back = pages.end >= known.end_page;
            if (reaches_front && reaches_back)
                known.first_page = known.end_page = 0;
            else if (reaches_front)
                known.first_page = std::max(known.first_page, pages.end);
            else if (reaches_back)
                known.end_page = std::min(known.end_page, pages.first);
        });
    }
}

void ExtentRegistry::forget_contents(uintptr_t begin, size_t bytes) {
    if (bytes < kForgetBytes) return;
    const uintptr_t end = begin + bytes;
    for (uintptr_t chunk = chunk_of(begin); chunk < end; chunk += kChunkBytes) {
        if (PagesInChunk(chunk, begin, end).bytes() < kForgetBytes) continue;
        if (Entry* entry = entry_of(chunk)) entry->fetch_add(uint64_t{1} << 32, std::memory_order_relaxed);
    }
}

bool ExtentRegistry::has_moved_mark(uintptr_t begin) const {
    const Entry* entry = entry_of(begin);
    return entry != nullptr && Chunk::unpack(entry->load(std::memory_order_relaxed)).moved;
}

void ExtentRegistry::set_moved_mark(uintptr_t begin, bool moved) {
    if (Entry* entry = entry_of(begin)) update(*entry, [moved](Chunk& known) { known.moved = moved; });
}

namespace {

// The chunks that lie whole in [begin, begin + bytes).
struct WholeChunks {
    uintptr_t first;
    uintptr_t end;
    WholeChunks(uintptr_t begin, size_t bytes)
        : first((begin + kChunkBytes - 1) / kChunkBytes), end((begin + bytes) / kChunkBytes) {}
};

}    // namespace

// Memory that is not registered (its leaf was refused) has no objects either.
void ExtentRegistry::add_object(uintptr_t begin, size_t bytes) {
    const WholeChunks chunks(begin, bytes);
    if (bytes < kMinObjectBytes) return;
    const uint64_t count = std::min<uint64_t>(chunks.end - chunks.first, UINT32_MAX);
    for (uintptr_t chunk = chunks.first; chunk < chunks.end; ++chunk)
        if (Leaf* leaf = leaf_of(chunk * kChunkBytes))
            leaf->objects[index_in_leaf(chunk * kChunkBytes)].store((chunk - chunks.first) << 32 | count,
                                                                    std::memory_order_relaxed);
}

void ExtentRegistry::remove_object(uintptr_t begin, size_t bytes) {
    const WholeChunks chunks(begin, bytes);
    if (bytes < kMinObjectBytes) return;
    for (uintptr_t chunk = chunks.first; chunk < chunks.end; ++chunk)
        if (Leaf* leaf = leaf_of(chunk * kChunkBytes))
            leaf->objects[index_in_leaf(chunk * kChunkBytes)].store(0, std::memory_order_relaxed);
}

HeapObject ExtentRegistry::find_object(uintptr_t address) const {
    const Leaf* leaf = leaf_of(address);
    if (leaf == nullptr) return {};
    const uint64_t object = leaf->objects[index_in_leaf(address)].load(std::memory_order_relaxed);
    if (object == 0) return {};
    const uintptr_t begin = chunk_of(address) - (object >> 32) * kChunkBytes;
    return {begin, begin + (object & UINT32_MAX) * kChunkBytes};
}

HeapExtent ExtentRegistry::find(uintptr_t address) const {
    HeapExtent extent;
    const Entry* entry = entry_of(address);
    if (entry == nullptr) return extent;
    const Chunk chunk = Chunk::unpack(entry->load(std::memory_order_relaxed));
    extent.generation = chunk.generation;
    const uint32_t page = page_in_chunk(address);
    if (page < chunk.first_page || page >= chunk.end_page) return extent;
    extent.ours = true;
    extent.movable = !chunk.pinned;
    extent.placement = chunk.placement;
    return extent;
}

}    // namespace pghot
