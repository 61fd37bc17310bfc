// SPDX-License-Identifier: Apache-2.0
#include "runtime/policy/exchange.h"

#include <algorithm>
#include <array>
#include <functional>
#include <span>

namespace pghot {
namespace {

constexpr Tick kSliceEvery = ticks_of_ms(96);    // about PGHOT_MIGRATE_SLEEP's default
// Blocks a slice while nothing is exchanged, and at most while something is: 12 us and 0.4 ms.
constexpr uint32_t kIdleBlocks = 16;
constexpr uint32_t kBusyBlocks = 512;
// Of the pages demoted ahead of promotions so many may be lost a second: when others take the room that we make, we
// stop making it.
constexpr uint32_t kLostPerSecond = 64;
// A call's fixed cost wants company: fewer pages than this wait, up to half a second.
constexpr uint64_t kFewUp = 32;
constexpr uint64_t kFewDown = 512;    // a huge page, or nothing could make room where all are huge
constexpr Tick kLongestWait = ticks_of_ms(500);
// How much more a demoted page must have ahead to come back.
constexpr double kReturnMargin = 2;
// Time in which an exchange of two pages must earn its cost.
constexpr double kHorizonSeconds = 30;
// A page that was promoted is not demoted for so many windows, unless its chunk has paid.
constexpr Tick kPayWindows = 2;

double least_gain(const MoveEconomy& economy) {
    if (!economy.gain_known || economy.sample_gain_ns <= 0) return 0;
    return 2 * static_cast<double>(economy.page_ns) / (kHorizonSeconds * static_cast<double>(economy.sample_gain_ns));
}

// Classes that have pages in `place`.
struct ClassList {
    std::array<HeatClass, kHeatClasses> at{};
    size_t count = 0;
    std::span<HeatClass> all() { return {at.data(), count}; }
};
ClassList classes_in(const HeatHistogram& histogram, Place place) {
    ClassList list;
    for (HeatClass i = 0; i < kHeatClasses; ++i)
        if (histogram.pages(i, place) != 0) list.at[list.count++] = i;
    return list;
}

}    // namespace

struct Exchange::Slice {
    HeatTable& heat;
    Ledger& ledger;
    Tick now;
    Take take;
    Quota quota;
};

void Exchange::sampled(const ChunkHeader& header, const PageRecord& page, const HeatRules& rules) {
    if (place_of(header, page) == Place::kUnknown) return;
    const Tick age = header.last - header.last_sample(page);
    histogram_.sampled(class_of(heat_level(page, age), density_of(header, rules)));
}

void Exchange::go_on(HeatTable& heat, const Capacity& capacity, Ledger& ledger, const MoveEconomy& economy, Tick now,
                     Take take) {
    if (!started_) next_slice_ = credited_ = now;
    started_ = true;
    if (later_by(now, next_slice_) < 0) return;
    next_slice_ = now + kSliceEvery;
    ledger.damp(now);
    least_gain_ = least_gain(economy);
    const bool busy = capacity.tight() || capacity.excess() > 0;
    Slice slice{heat, ledger, now, take, busy ? quota_of(capacity, now) : Quota{}};
    uint32_t blocks = std::clamp(heat.blocks_used() / 8, kIdleBlocks, busy ? kBusyBlocks : kIdleBlocks);
    if (busy) blocks = std::max(blocks, kBusyBlocks / 4);
    blocks = std::min(blocks, heat.blocks_used());
    for (; blocks > 0; --blocks) {
        look_at(slice, hand_);
        if (++hand_ < heat.blocks_used()) continue;
        hand_ = 0;
        histogram_.end_turn(now);
        match(capacity, ledger.margin());
    }
}

Exchange::Quota Exchange::quota_of(const Capacity& capacity, Tick now) {
    const uint32_t regained = (now - credited_) * kLostPerSecond * 16 / 1000;
    if (regained > 0) credited_ = now;
    credit_ = std::min(credit_ + regained, kMostAhead);
    const uint64_t excess = capacity.excess();
    const bool company = wanted_ >= kFewUp || later_by(now, planned_ + kLongestWait) >= 0;
    if (!company && excess == 0) return {};
    Quota quota;
    quota.up = std::min(wanted_, capacity.room());
    if (!demote_ || capacity.lower_tier_is_full(now)) return quota;
    const uint64_t there = capacity.room() + capacity.coming();
    if (wanted_ > there)
        quota.down =
            std::min(std::max(wanted_ - there, kFewDown), static_cast<uint64_t>(std::max(credit_, int64_t{0})));
    quota.down = std::min<uint64_t>(quota.down + excess, kMostAhead);
    return quota;
}

void Exchange::look_at(Slice& slice, Block block) {
    ChunkHeader& header = slice.heat.header(block);
    if (header.chunk == ChunkHeader::kNoChunk) return;
    header.rotate(slice.now, slice.heat.rules());
    slice.ledger.judge_chunk(header, slice.now, slice.heat.rules());
    const auto pages = slice.heat.pages(block);
    const unsigned density = density_of(header, slice.heat.rules());
    const bool owes =
        header.unpaid != 0 && later_by(slice.now, header.moved + kPayWindows * slice.heat.rules().window) < 0;
    const unsigned units = header.huge ? 1 : kPagesPerChunk;
    const uint32_t pages_each = kPagesPerChunk / units;
    Wish wish = Wish::kStay;
    unsigned begin = 0;
    for (unsigned i = 0; i < units; ++i) {
        const PageRecord& page = pages[i];
        const Place place = page.page_state() == PageState::kRefused ? Place::kUnknown : place_of(header, page);
        Wish now_wish = Wish::kStay;
        if (place != Place::kUnknown) {
            const HeatClass heat = class_of(heat_level(page, slice.now - header.last_sample(page)), density);
            histogram_.count(heat, place, pages_each);
            if (place == Place::kLower || !owes) now_wish = wish_of(header, page, place, heat, slice.now);
        }
        if (now_wish == wish) continue;
        plan_run(slice, block, wish, begin, i);
        wish = now_wish;
        begin = i;
    }
    plan_run(slice, block, wish, begin, units);
}

Exchange::Wish Exchange::wish_of(const ChunkHeader& header, const PageRecord& page, Place place, HeatClass heat,
                                 Tick now) const {
    const PageState state = page.page_state();
    const bool cooled = state == PageState::kCooling && later_by(now, header.retry) >= 0;
    const bool free = state == PageState::kCold || cooled;
    if (place == Place::kTop) return free && down_.contains(heat) ? Wish::kDown : Wish::kStay;
    const HeatClasses& classes = state == PageState::kDemoted ? up_again_ : up_;
    const bool waits = free || state == PageState::kHeld || state == PageState::kDemoted;
    return waits && classes.contains(heat) ? Wish::kUp : Wish::kStay;
}

void Exchange::plan_run(Slice& slice, Block block, Wish wish, unsigned begin, unsigned end) {
    if (wish == Wish::kStay || begin == end) return;
    uint64_t& left = wish == Wish::kUp ? slice.quota.up : slice.quota.down;
    const bool huge = slice.heat.header(block).huge;
    const uint32_t wanted = huge ? kPagesPerChunk : static_cast<uint32_t>(std::min<uint64_t>(left, end - begin));
    if (left < wanted || wanted == 0) return;
    const uint32_t taken = slice.take(wish == Wish::kUp ? MoveKind::kPromote : MoveKind::kDemote, block, begin, wanted);
    if (taken < wanted) left = 0;    // no more places in the plan, or no node
    left -= std::min<uint64_t>(left, taken);
    if (taken == 0) return;
    planned_ = slice.now;
    if (wish == Wish::kUp) {
        wanted_ -= std::min<uint64_t>(wanted_, taken);
        credit_ += taken;
    } else {
        credit_ -= taken;
    }
}

bool Exchange::pays(HeatClass up, HeatClass down, double margin) const {
    const double hot = histogram_.least_rate(up);
    const double cold = histogram_.most_rate(down);
    return hot >= cold * margin && hot - cold >= least_gain_;
}

namespace {

// Pages of the top tier from the coldest class on.
class Victims {
public:
    Victims(const HeatHistogram& histogram, std::span<const HeatClass> coldest_first, HeatClasses& taken)
        : histogram_(histogram), rest_(coldest_first), taken_(taken) {
        next();
    }
    bool empty() const { return left_ == 0; }
    HeatClass coldest() const { return rest_[0]; }
    // Up to so many of the coldest class; answers how many.
    uint64_t take(uint64_t pages) {
        const uint64_t taken = std::min(pages, left_);
        if (taken == 0) return 0;
        taken_.insert(coldest());
        left_ -= taken;
        if (left_ == 0) {
            rest_ = rest_.subspan(1);
            next();
        }
        return taken;
    }

private:
    void next() { left_ = rest_.empty() ? 0 : histogram_.pages(rest_[0], Place::kTop); }

    const HeatHistogram& histogram_;
    std::span<const HeatClass> rest_;
    HeatClasses& taken_;
    uint64_t left_ = 0;
};

}    // namespace

// From the hottest class of the lower tier and the coldest of the top tier on. What is over the limit takes the coldest
// first; room that is there takes the hottest without anything going down.
void Exchange::match(const Capacity& capacity, double margin) {
    ClassList ups = classes_in(histogram_, Place::kLower);
    ClassList downs = classes_in(histogram_, Place::kTop);
    std::ranges::sort(ups.all(), std::greater{}, [&](HeatClass which) { return histogram_.least_rate(which); });
    std::ranges::sort(downs.all(), std::less{}, [&](HeatClass which) { return histogram_.most_rate(which); });
    up_ = up_again_ = down_ = {};
    wanted_ = 0;
    Victims victims(histogram_, downs.all(), down_);
    for (uint64_t over = capacity.excess(); over > 0 && !victims.empty();) over -= victims.take(over);
    uint64_t room = capacity.room();
    for (const HeatClass up : ups.all()) {
        if (is_vague(up)) continue;
        if (histogram_.least_rate(up) < least_gain_) return;
        uint64_t left = histogram_.pages(up, Place::kLower);
        const uint64_t before = left;
        if (victims.empty() || pays(up, victims.coldest(), margin * kReturnMargin)) up_again_.insert(up);
        const uint64_t free = std::min(left, room);
        left -= free;
        room -= free;
        while (left > 0 && demote_ && !victims.empty() && pays(up, victims.coldest(), margin))
            left -= victims.take(left);
        if (left < before) up_.insert(up);
        wanted_ += before - left;
        if (left > 0) return;
    }
}

}    // namespace pghot
