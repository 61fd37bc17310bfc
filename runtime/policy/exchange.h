// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/base/function_ref.h"
#include "runtime/policy/capacity.h"
#include "runtime/policy/heat_histogram.h"
#include "runtime/policy/heat_table.h"
#include "runtime/policy/ledger.h"
#include "runtime/policy/move.h"
#include "runtime/policy/payback.h"

namespace pghot {

// Who changes places when the top tier is full. Goes over the heat table in turns, a slice at a time, counts the pages
// of each heat class, and at the end of a turn matches the hottest classes of the lower tier with the coldest of the
// top tier, as long as a page going up is likely to be used so much more than the one going down that both moves pay.
// On the next turns pages of the matched classes are planned: demotions first, and promotions as their room comes.
// Every demotion has a promotion that pays for it; beyond PGHOT_DRAM_LIMIT alone pages go down without.
//
// Goes over the table slowly also while there is room, so that it knows the rates when there is none, and to judge
// moved chunks. Pure; owned by the policy.
class Exchange {
public:
    using Block = HeatTable::Block;
    // Plans up to `count` pages of a block from `begin`, of a huge page all 512, and answers how many.
    using Take = FunctionRef<uint32_t(MoveKind kind, Block block, unsigned begin, uint32_t count)>;

    explicit Exchange(bool demote) : demote_(demote) {}

    // A sample of `page` is about to be recorded; the header's window is up to date.
    void sampled(const ChunkHeader& header, const PageRecord& page, const HeatRules& rules);
    // A slice, if it is time for one.
    void go_on(HeatTable& heat, const Capacity& capacity, Ledger& ledger, const MoveEconomy& economy, Tick now,
               Take take);

private:
    // Pages demoted ahead of promotions: two large calls.
    static constexpr int64_t kMostAhead = 4096;

    enum class Wish : uint8_t { kStay, kUp, kDown };
    // What may be planned in a slice, in pages.
    struct Quota {
        uint64_t up = 0;
        uint64_t down = 0;
        uint64_t excess = 0;    // of `down`, for the limit's sake: no promotion follows
    };
    struct Slice;
    struct Chunk;

    Quota quota_of(const Capacity& capacity, Tick now);
    void look_at(Slice& slice, Block block);
    Wish count(const Chunk& chunk, const PageRecord& page, uint32_t pages, Tick now);
    Wish wish_of(const ChunkHeader& header, const PageRecord& page, Place place, HeatClass heat, Tick now) const;
    void plan_run(Slice& slice, Block block, Wish wish, unsigned begin, unsigned end);
    void match(const Capacity& capacity, double margin);
    bool pays(HeatClass up, HeatClass down, double margin) const;

    HeatHistogram histogram_;
    double least_gain_ = 0;    // samples a second that a page must be ahead, for both moves to pay
    bool demote_;
    HeatClasses up_;
    HeatClasses down_;
    uint64_t wanted_ = 0;            // pages matched, less those planned since
    int64_t credit_ = kMostAhead;    // pages that may still be demoted ahead of promotions
    Tick credited_ = 0;
    Block hand_ = 0;
    Tick next_slice_ = 0;
    Tick planned_ = 0;    // when something was, last
    bool started_ = false;
};

// ---- inline, since every sample passes here

inline void Exchange::sampled(const ChunkHeader& header, const PageRecord& page, const HeatRules& rules) {
    if (place_of(header, page) == Place::kUnknown) return;
    const Tick age = header.last - header.last_sample(page);
    if (HeatHistogram::is_telling(page, age)) histogram_.sampled(class_of(page, age, density_of(header, rules)));
}

}    // namespace pghot
