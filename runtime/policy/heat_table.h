// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/policy/chunk_header.h"
#include "runtime/policy/page_record.h"

namespace pghot {

// Heat of every sampled page: a dense block of 512 records and a header for each 2 MiB chunk, made on its first sample.
// Owned by the sampler thread. Lives in storage given by the caller and never allocates; when the storage is full, the
// coldest chunk it finds makes room.
//
// Storage:  | records: 2048 B a block | headers: 104 B | index: two 8 B slots | ready list: 4 B |   4.24 bytes a page
//
// Only the index must be zero at first, but a page of the storage is touched no earlier than it is needed: fresh mmap
// memory costs what is used.
class HeatTable {
public:
    using Block = uint32_t;
    static constexpr Block kNoBlock = ~0u;
    // 57 bits of address (five-level page tables) leave 36 for the chunk; the index keeps them beside 28 for the block.
    static constexpr unsigned kBlockBits = 28;
    static constexpr uint64_t kChunkLimit = 1ull << 36;

    // `storage` is zero-filled and outlives the table.
    HeatTable(std::span<std::byte> storage, const HeatRules& rules);
    HeatTable(const HeatTable&) = delete;
    HeatTable& operator=(const HeatTable&) = delete;

    // Bytes of storage for this many chunks.
    static size_t bytes_for(size_t chunks);
    size_t capacity() const { return capacity_; }
    size_t chunks() const { return chunks_; }
    bool has_free_block() const { return chunks_ < capacity_; }
    uint64_t evictions() const { return evictions_; }

    // kNoBlock when the chunk has no heat.
    Block find(uint64_t chunk) const;
    // Makes the block when there is none. kNoBlock only when the storage holds no chunk at all.
    Block obtain(uint64_t chunk, Tick now);
    // Forgets all of a chunk.
    void release(Block block);
    // Forgets the heat, tier and state of one page.
    void reset_page(Block block, unsigned index);
    // Forgets the heat of one page and takes `now` as its time.
    void cool_page(Block block, unsigned index, Tick now);

    // Counts one access: window, frequency, node. A tick a little before the newest one (rings are drained one after
    // the other) counts as the newest.
    void heat(Block block, unsigned index, Tick tick, uint8_t caller);
    // The same for a caller that has brought the block up to date (advance, rotate) and has the record in hand.
    void heat(ChunkHeader& header, PageRecord& page, unsigned index, uint8_t caller) const;
    // Hints for a sample that is recorded soon, about ten samples ahead: first the index, then what it leads to.
    void prefetch_index(uint64_t chunk) const;
    void prefetch_heat(uint64_t chunk, unsigned index) const;
    void prefetch_header(Block block) const;
    // Brings the times of a block up to `now`: marks records whose 14 bit time is about to become ambiguous.
    void advance(Block block, Tick now);

    ChunkHeader& header(Block block) { return headers_[block]; }
    const ChunkHeader& header(Block block) const { return headers_[block]; }
    std::span<PageRecord, kPagesPerChunk> pages(Block block) { return block_pages(block); }
    std::span<const PageRecord, kPagesPerChunk> pages(Block block) const { return block_pages(block); }
    const HeatRules& rules() const { return rules_; }
    // Blocks are numbered from 0 up to here; those that are free have chunk == kNoChunk.
    Block blocks_used() const { return used_; }

    // The ready list: blocks with something to plan, each at most once, a place for every block. Entries may be sorted
    // by the caller; keep() drops those from `count` on.
    void list(Block block);
    std::span<Block> listed() { return {list_, listed_}; }
    bool has_listed() const { return listed_ != 0; }
    void keep(size_t count);

private:
    static constexpr size_t kRecordBytes = kPagesPerChunk * sizeof(PageRecord);
    // Half full at most: a probe sequence is 1.5 slots on average.
    static constexpr size_t kSlotsPerBlock = 2;
    static constexpr size_t kBytesPerBlock =
        kRecordBytes + sizeof(ChunkHeader) + kSlotsPerBlock * sizeof(uint64_t) + sizeof(Block);
    static_assert(kBytesPerBlock * 4 <= uint64_t{kPagesPerChunk} * 17, "at most 4.25 bytes a page");

    // Fibonacci hashing spreads neighbours; the multiply maps the hash to any number of slots without a division.
    size_t home(uint64_t chunk) const {
        const uint64_t hash = chunk * 0x9e3779b97f4a7c15ull;
        return static_cast<size_t>((static_cast<unsigned __int128>(hash) * slot_count_) >> 64);
    }
    void insert(uint64_t chunk, Block block);
    void erase(uint64_t chunk);
    Block take_block(Tick now);
    Block coldest(Tick now);
    void sweep(Block block, Tick now);
    std::span<PageRecord, kPagesPerChunk> block_pages(Block block) const {
        return std::span<PageRecord, kPagesPerChunk>{records_ + size_t{block} * kPagesPerChunk, kPagesPerChunk};
    }

    HeatRules rules_;
    PageRecord* records_ = nullptr;
    ChunkHeader* headers_ = nullptr;
    uint64_t* slots_ = nullptr;    // 0: empty; else chunk << kBlockBits | block + 1
    Block* list_ = nullptr;
    size_t capacity_ = 0;
    size_t slot_count_ = 0;
    size_t chunks_ = 0;
    size_t listed_ = 0;
    Block used_ = 0;
    Block free_ = kNoBlock;    // chain through ChunkHeader::last
    Block hand_ = 0;           // where the search for a cold chunk goes on
    uint64_t evictions_ = 0;
};

// ---- inline, since every sample passes here

inline HeatTable::Block HeatTable::find(uint64_t chunk) const {
    if (capacity_ == 0 || chunk >= kChunkLimit) return kNoBlock;
    for (size_t i = home(chunk); slots_[i] != 0; i = i + 1 == slot_count_ ? 0 : i + 1)
        if (slots_[i] >> kBlockBits == chunk) return static_cast<Block>(slots_[i] & ((1u << kBlockBits) - 1)) - 1;
    return kNoBlock;
}

inline void HeatTable::prefetch_index(uint64_t chunk) const {
    if (capacity_ != 0) __builtin_prefetch(&slots_[home(chunk)]);
}

inline void HeatTable::prefetch_header(Block block) const {
    const auto* header = reinterpret_cast<const std::byte*>(&headers_[block]);
    __builtin_prefetch(header, 1);
    __builtin_prefetch(header + sizeof(ChunkHeader) - 1, 1);
}

inline void HeatTable::prefetch_heat(uint64_t chunk, unsigned index) const {
    const Block block = find(chunk);
    if (block == kNoBlock) return;
    prefetch_header(block);
    __builtin_prefetch(&records_[size_t{block} * kPagesPerChunk + index], 1);
}

inline void HeatTable::advance(Block block, Tick now) {
    ChunkHeader& header = headers_[block];
    // Never behind the running half window either: planning may have moved that on.
    const Tick newest = later_by(header.half_start, header.last) > 0 ? header.half_start : header.last;
    const Tick to = later_by(now, newest) > 0 ? now : newest;
    if (to >> kEpochBits != header.last >> kEpochBits) sweep(block, to);
    header.last = to;
}

inline void HeatTable::heat(Block block, unsigned index, Tick tick, uint8_t caller) {
    advance(block, tick);
    ChunkHeader& header = headers_[block];
    header.rotate(header.last, rules_);
    PageRecord& record = block_pages(block)[index];
    PageRecord page = record;    // one load and one store: the bit fields are worked on in a register
    heat(header, page, index, caller);
    record = page;
}

inline void HeatTable::heat(ChunkHeader& header, PageRecord& page, unsigned index, uint8_t caller) const {
    const Tick now = header.last;
    header.count_sample(caller, now);
    header.leave(page, index, rules_);
    const Tick gap = now - header.last_sample(page);
    const bool sampled = page.freq != 0;
    const bool continues = sampled && gap <= rules_.window;
    const unsigned after_gap = sampled ? page.history_after(gap) : 0;
    page.history = (continues ? page.history : after_gap) & kHistoryMax;
    page.freq = (continues ? std::min<unsigned>(page.freq + 1, kFrequencyMax) : 1) & 0xf;
    page.time = now & kTickMask;
    page.vote(caller);
    header.enter(index);
}

}    // namespace pghot
