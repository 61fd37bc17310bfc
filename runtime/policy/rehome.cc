// SPDX-License-Identifier: Apache-2.0
#include "runtime/policy/rehome.h"

#include <algorithm>

namespace pghot {
namespace {

constexpr Tick kWeighEvery = 6;                         // 96 ms
constexpr unsigned kSureMargin = kMarginMax / 2 + 1;    // of a page's own vote

uint64_t page_number(uint64_t chunk, unsigned page) { return chunk * kPagesPerChunk + page; }

uintptr_t address_of(uint64_t chunk, unsigned page) {
    return static_cast<uintptr_t>(chunk * kChunkBytes + page * kPageBytes);
}

void add_saturating(uint8_t& count, unsigned amount) {
    count = static_cast<uint8_t>(std::min<unsigned>(count + amount, UINT8_MAX));
}

// In DRAM, or nobody knows where: the mover asks the kernel before it moves anything.
bool may_move(const PageRecord& page, uint8_t caller) {
    if (page.page_state() != PageState::kCold || (page.level_seen != 0 && page.top == 0)) return false;
    return page.node == caller || page.margin < kSureMargin;
}

}    // namespace

// A unit that nothing speaks against, or that nothing was heard of for a window, makes room for one that is used from
// afar.
void Rehome::count(Table table, uint64_t unit, uint8_t caller, bool remote, const HeatRules& rules, Tick now) {
    Evidence& evidence = table[unit % table.size()];
    if (evidence.unit != unit) {
        const bool is_old = later_by(now, evidence.last) > static_cast<int32_t>(rules.window);
        if (!remote || (evidence.unit != 0 && evidence.score > 0 && !is_old)) return;
        evidence = Evidence{};
        evidence.unit = unit;
        evidence.caller = evidence.other = caller;
    }
    evidence.last = now;
    if (caller == evidence.caller) {
        add_saturating(evidence.mine, 1);
        add_saturating(evidence.remote, remote);
    } else {
        add_saturating(evidence.others, 1);
        evidence.other = caller;
    }
}

void Rehome::note(uint64_t chunk, unsigned page, uint8_t caller, bool remote, const HeatRules& rules, Tick now) {
    if (caller == kUnknownCaller) return;
    count(chunks_, chunk, caller, remote, rules, now);
    count(pages_, page_number(chunk, page), caller, remote, rules, now);
}

void Rehome::weigh(Evidence& evidence, Tick now) {
    if (evidence.mine == 0 && evidence.others == 0) return;
    const int score = evidence.score + evidence.mine - static_cast<int>(kOtherCosts) * evidence.others;
    if (evidence.score == 0) evidence.since = now;
    if (score <= 0) {
        if (evidence.others > evidence.mine) evidence.caller = evidence.other;
        evidence.remote = 0;
    }
    evidence.score = static_cast<uint8_t>(std::clamp(score, 0, int{UINT8_MAX}));
    evidence.mine = evidence.others = 0;
}

bool Rehome::is_clear(const Evidence& evidence, const Demand& demand, const HeatRules& rules, Tick now) {
    const auto sure = static_cast<int32_t>(demand.windows * rules.window);
    return evidence.score >= demand.score && evidence.remote >= kRemoteSamples && later_by(now, evidence.since) >= sure;
}

// Then its pages go with it.
bool Rehome::chunk_agrees(uint64_t chunk, uint8_t caller) const {
    const Evidence& evidence = chunks_[chunk % chunks_.size()];
    return evidence.unit == chunk && evidence.caller == caller && evidence.score > 0;
}

bool Rehome::is_resting(const ChunkHeader& header, const HeatRules& rules, Tick now) {
    return header.moved != 0 && later_by(now, header.moved) < static_cast<int32_t>(kRestWindows * rules.window);
}

void Rehome::plan(HeatTable& heat, const TargetMap& targets, uint64_t open, Tick now, Emit emit) {
    if (later_by(now, weighed_ + kWeighEvery) < 0) return;
    weighed_ = now;
    const auto plan_clear = [&](Table table, const Demand& demand, auto plan_unit) {
        for (Evidence& evidence : table) {
            weigh(evidence, now);
            if (!is_clear(evidence, demand, heat.rules(), now)) continue;
            const NodeId target = targets.own_node(evidence.caller, now, open);
            if (target.valid() && !plan_unit(evidence, target)) continue;    // not yet
            evidence = Evidence{};
        }
    };
    plan_clear(chunks_, {kChunkScore, kSureWindows}, [&](const Evidence& evidence, NodeId target) {
        const HeatTable::Block block = heat.find(evidence.unit);
        if (block == HeatTable::kNoBlock) return true;
        if (is_resting(heat.header(block), heat.rules(), now)) return false;
        return plan_chunk(heat, block, evidence.caller, target, emit);
    });
    plan_clear(pages_, {kPageScore, kPageSureWindows}, [&](const Evidence& evidence, NodeId target) {
        const uint64_t chunk = evidence.unit / kPagesPerChunk;
        const HeatTable::Block block = heat.find(chunk);
        const bool may = block != HeatTable::kNoBlock && !chunk_agrees(chunk, evidence.caller);
        return !may || plan_page(heat, block, static_cast<unsigned>(evidence.unit % kPagesPerChunk), target, emit);
    });
}

bool Rehome::plan_chunk(HeatTable& heat, HeatTable::Block block, uint8_t caller, NodeId target, Emit emit) {
    ChunkHeader& header = heat.header(block);
    const auto pages = heat.pages(block);
    if (header.huge != 0) {
        if (!may_move(pages[0], caller)) return true;
        if (!emit(address_of(header.chunk, 0), kPagesPerChunk, target, MoveRule::kHuge)) return false;
        for (PageRecord& page : pages)
            if (page.page_state() == PageState::kCold) header.set_state(page, PageState::kPlanned);
        return true;
    }
    for (unsigned begin = 0; begin < kPagesPerChunk;) {
        unsigned end = begin;
        while (end < kPagesPerChunk && may_move(pages[end], caller)) ++end;
        if (end > begin) {
            if (!emit(address_of(header.chunk, begin), end - begin, target, MoveRule::kChunk)) return false;
            for (unsigned i = begin; i < end; ++i) header.set_state(pages[i], PageState::kPlanned);
        }
        begin = end + 1;
    }
    return true;
}

bool Rehome::plan_page(HeatTable& heat, HeatTable::Block block, unsigned index, NodeId target, Emit emit) {
    ChunkHeader& header = heat.header(block);
    PageRecord& page = heat.pages(block)[index];
    if (header.huge != 0 || page.page_state() != PageState::kCold) return true;
    if (!emit(address_of(header.chunk, index), 1, target, MoveRule::kPage)) return false;
    header.set_state(page, PageState::kPlanned);
    return true;
}

}    // namespace pghot
