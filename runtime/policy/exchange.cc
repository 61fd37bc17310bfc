// SPDX-License-Identifier: Apache-2.0
#include "runtime/policy/exchange.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <span>

namespace pghot {
namespace {

constexpr Tick kSliceEvery = ticks_of_ms(96);    // about PGHOT_MIGRATE_SLEEP's default
// Blocks a slice while nothing is exchanged, and at most while something is.
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
constexpr double kReturnMargin = 1.5;
// Time in which an exchange of two pages must earn its cost.
constexpr double kHorizonSeconds = static_cast<double>(kMinHorizon) * kTickNs / kNsPerSecond;
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

// What pages of a chunk have in common.
struct Exchange::Chunk {
    const ChunkHeader& header;
    unsigned density;
    bool owes;    // its promotions have not paid yet, and are not old
};

struct Exchange::Slice {
    HeatTable& heat;
    Ledger& ledger;
    Tick now;
    Take take;
    Quota quota;
};

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
    uint32_t blocks = std::clamp(heat.blocks_used() / 4, kIdleBlocks, busy ? kBusyBlocks : kIdleBlocks);
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
    quota.excess = std::min<uint64_t>(excess, kMostAhead);
    quota.down = std::min<uint64_t>(quota.down + quota.excess, kMostAhead);
    return quota;
}

void Exchange::look_at(Slice& slice, Block block) {
    ChunkHeader& header = slice.heat.header(block);
    if (header.chunk == ChunkHeader::kNoChunk) return;
    header.rotate(slice.now, slice.heat.rules());
    slice.ledger.judge_chunk(header, slice.now, slice.heat.rules());
    const HeatRules& rules = slice.heat.rules();
    const Chunk chunk{header, density_of(header, rules),
                      header.unpaid != 0 && later_by(slice.now, header.moved + kPayWindows * rules.window) < 0};
    const auto pages = slice.heat.pages(block);
    const unsigned units = header.huge ? 1 : kPagesPerChunk;
    Wish wish = Wish::kStay;
    unsigned run = 0;    // where pages with this wish begin
    for (unsigned begin = 0; begin < units;) {
        // Pages that are alike in every bit are looked at once: most were never sampled.
        const auto bits = std::bit_cast<uint32_t>(pages[begin]);
        unsigned end = begin + 1;
        while (end < units && std::bit_cast<uint32_t>(pages[end]) == bits) ++end;
        const Wish next = count(chunk, pages[begin], (end - begin) * (kPagesPerChunk / units), slice.now);
        if (next != wish) {
            plan_run(slice, block, wish, run, begin);
            wish = next;
            run = begin;
        }
        begin = end;
    }
    plan_run(slice, block, wish, run, units);
}

// Counts pages that look like `page`, and answers what is to become of them.
Exchange::Wish Exchange::count(const Chunk& chunk, const PageRecord& page, uint32_t pages, Tick now) {
    if (page.page_state() == PageState::kRefused) return Wish::kStay;
    const Place place = place_of(chunk.header, page);
    if (place == Place::kUnknown) return Wish::kStay;
    const Tick age = now - chunk.header.last_sample(page);
    const HeatClass heat = class_of(page, age, chunk.density);
    histogram_.count(heat, place, pages, HeatHistogram::is_telling(page, age));
    if (place == Place::kTop && chunk.owes) return Wish::kStay;
    return wish_of(chunk.header, page, place, heat, now);
}

Exchange::Wish Exchange::wish_of(const ChunkHeader& header, const PageRecord& page, Place place, HeatClass heat,
                                 Tick now) const {
    const PageState state = page.page_state();
    const bool cooled = state == PageState::kCooling && later_by(now, header.retry) >= 0;
    const bool free = state == PageState::kCold || cooled;
    if (place == Place::kTop) return free && down_.contains(heat) ? Wish::kDown : Wish::kStay;
    const bool waits = free || state == PageState::kHeld || state == PageState::kDemoted;
    return waits && up_.contains(heat) ? Wish::kUp : Wish::kStay;
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
        const uint64_t owed = std::min<uint64_t>(slice.quota.excess, taken);
        slice.quota.excess -= owed;
        credit_ -= static_cast<int64_t>(taken - owed);
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
    up_ = down_ = {};
    wanted_ = 0;
    Victims victims(histogram_, downs.all(), down_);
    for (uint64_t over = capacity.excess(); over > 0 && !victims.empty();) over -= victims.take(over);
    uint64_t room = capacity.room();
    for (const HeatClass up : ups.all()) {
        if (is_vague(up)) continue;
        if (histogram_.least_rate(up) < least_gain_) return;
        uint64_t left = histogram_.pages(up, Place::kLower);
        const uint64_t before = left;
        const uint64_t free = std::min(left, room);
        left -= free;
        room -= free;
        const double ahead = is_demoted(up) ? margin * kReturnMargin : margin;
        while (left > 0 && demote_ && !victims.empty() && pays(up, victims.coldest(), ahead))
            left -= victims.take(left);
        if (left < before) up_.insert(up);
        wanted_ += before - left;
        if (left > 0 && !is_demoted(up)) return;
    }
}

}    // namespace pghot
