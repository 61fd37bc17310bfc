// SPDX-License-Identifier: Apache-2.0
#include "runtime/policy/heat_table.h"

#include <algorithm>
#include <cstring>

namespace pghot {
namespace {

constexpr size_t kAlignment = 64;    // records of a block start on a cache line
// Chunks looked at to find a cold one. The coldest of 16 is among the coldest eighth with 88 % probability, and an
// eviction stays below a microsecond; tables of up to 16 chunks evict exactly the coldest.
constexpr unsigned kEvictionCandidates = 16;

uint32_t heat_now(ChunkHeader& header, Tick now, const HeatRules& rules) {
    header.rotate(now, rules);
    return header.window_samples();
}

}    // namespace

size_t HeatTable::bytes_for(size_t chunks) { return chunks * kBytesPerBlock + kAlignment; }

HeatTable::HeatTable(std::span<std::byte> storage, const HeatRules& rules) : rules_(rules) {
    const auto start = reinterpret_cast<uintptr_t>(storage.data());
    const size_t skip = (kAlignment - start % kAlignment) % kAlignment;
    if (storage.size() < skip) return;
    capacity_ = std::min((storage.size() - skip) / kBytesPerBlock, (size_t{1} << kBlockBits) - 1);
    slot_count_ = capacity_ * kSlotsPerBlock;
    std::byte* place = storage.data() + skip;
    records_ = reinterpret_cast<PageRecord*>(place);
    headers_ = reinterpret_cast<ChunkHeader*>(place += capacity_ * kRecordBytes);
    slots_ = reinterpret_cast<uint64_t*>(place += capacity_ * sizeof(ChunkHeader));
    list_ = reinterpret_cast<Block*>(place + slot_count_ * sizeof(uint64_t));
}

HeatTable::Block HeatTable::obtain(uint64_t chunk, Tick now) {
    const Block known = find(chunk);
    if (known != kNoBlock || capacity_ == 0 || chunk >= kChunkLimit) return known;
    const Block block = take_block(now);
    ChunkHeader& header = headers_[block];
    const bool listed = header.listed;
    header = ChunkHeader{};
    header.listed = listed;
    header.chunk = chunk;
    header.last = header.half_start = header.active_since = now;
    std::memset(static_cast<void*>(block_pages(block).data()), 0, kRecordBytes);
    insert(chunk, block);
    ++chunks_;
    return block;
}

void HeatTable::release(Block block) {
    ChunkHeader& header = headers_[block];
    erase(header.chunk);
    header.chunk = ChunkHeader::kNoChunk;
    header.last = free_;
    free_ = block;
    --chunks_;
}

void HeatTable::reset_page(Block block, unsigned index) {
    ChunkHeader& header = headers_[block];
    PageRecord& page = block_pages(block)[index];
    header.leave(page, index, rules_);
    header.set_state(page, PageState::kCold);
    header.set_top(page, false);
    page = PageRecord{};
}

void HeatTable::cool_page(Block block, unsigned index, Tick now) {
    ChunkHeader& header = headers_[block];
    PageRecord& page = block_pages(block)[index];
    header.leave(page, index, rules_);
    page.freq = page.history = 0;
    page.time = now & kTickMask;
}

// Every record's age is below two epochs here, since the last sweep cleared what was older than one: the 14 bits are
// still unambiguous. 512 records once in 131 s for a chunk that is sampled all the time.
void HeatTable::sweep(Block block, Tick now) {
    constexpr Tick kEpoch = Tick{1} << kEpochBits;
    ChunkHeader& header = headers_[block];
    for (PageRecord& page : block_pages(block)) {
        const PageState state = page.page_state();
        if (page.freq == 0 && state != PageState::kDemoted) continue;
        if (now - header.last_sample(page) < kEpoch) continue;
        page.freq = page.history = 0;    // outside the window of the chunk too, so no count changes
        if (state == PageState::kHeld || state == PageState::kDemoted) header.set_state(page, PageState::kCold);
    }
}

HeatTable::Block HeatTable::take_block(Tick now) {
    if (free_ == kNoBlock && used_ == capacity_) {
        release(coldest(now));
        ++evictions_;
    }
    if (free_ == kNoBlock) {
        headers_[used_].listed = 0;
        return used_++;
    }
    const Block block = free_;
    free_ = headers_[block].last;
    return block;
}

// A chunk with planned pages stays when there is another: its outcomes are still to come.
HeatTable::Block HeatTable::coldest(Tick now) {
    Block best = hand_;
    for (unsigned i = 0; i < std::min<size_t>(kEvictionCandidates, capacity_); ++i) {
        const Block block = hand_;
        hand_ = hand_ + 1 == used_ ? 0 : hand_ + 1;
        ChunkHeader& header = headers_[block];
        ChunkHeader& chosen = headers_[best];
        const uint32_t heat = heat_now(header, now, rules_);
        const uint32_t chosen_heat = heat_now(chosen, now, rules_);
        const bool pending = header.planned != 0;
        const bool chosen_pending = chosen.planned != 0;
        if (pending != chosen_pending) {
            if (chosen_pending) best = block;
        } else if (heat < chosen_heat || (heat == chosen_heat && later_by(chosen.last, header.last) > 0)) {
            best = block;
        }
    }
    return best;
}

void HeatTable::insert(uint64_t chunk, Block block) {
    size_t i = home(chunk);
    while (slots_[i] != 0) i = i + 1 == slot_count_ ? 0 : i + 1;
    slots_[i] = chunk << kBlockBits | (block + 1);
}

// Linear probing without tombstones: later entries of the probe sequence move up into the hole when their home allows.
void HeatTable::erase(uint64_t chunk) {
    size_t hole = home(chunk);
    while (slots_[hole] >> kBlockBits != chunk) hole = hole + 1 == slot_count_ ? 0 : hole + 1;
    for (size_t i = hole;;) {
        i = i + 1 == slot_count_ ? 0 : i + 1;
        if (slots_[i] == 0) break;
        const size_t wanted = home(slots_[i] >> kBlockBits);
        const bool between = hole <= i ? hole < wanted && wanted <= i : hole < wanted || wanted <= i;
        if (between) continue;
        slots_[hole] = slots_[i];
        hole = i;
    }
    slots_[hole] = 0;
}

void HeatTable::list(Block block) {
    if (headers_[block].listed) return;
    headers_[block].listed = 1;
    list_[listed_++] = block;
}

void HeatTable::keep(size_t count) {
    for (size_t i = count; i < listed_; ++i) headers_[list_[i]].listed = 0;
    listed_ = count;
}

}    // namespace pghot
