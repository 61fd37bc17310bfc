// SPDX-License-Identifier: Apache-2.0
#include "runtime/policy/promotion_policy.h"

#include <algorithm>

#include "runtime/policy/occupancy.h"

namespace pghot {
namespace {

// Samples between fetching and recording, listed chunks between fetching and judging: covers a miss to memory.
constexpr size_t kAhead = 12;

constexpr Tick kThinOut = ticks_of_ms(1000);

// A page of such a chunk that tells nothing of its place (stores only) is most likely at home too.
bool seems_at_home(const ChunkHeader& header) { return header.dram_seen && !header.lower_seen; }

// Heat of a huge page is kept at its head.
unsigned index_of(const Sample& sample) { return sample.huge ? 0 : page_in_chunk(sample.address); }

bool may_be_planned(PageState state) {
    return state == PageState::kCold || state == PageState::kHeld || state == PageState::kDemoted;
}

uintptr_t address_of(const ChunkHeader& header, unsigned page) {
    return static_cast<uintptr_t>(header.chunk * kChunkBytes + page * kPageBytes);
}

}    // namespace

// Moves being written, and where the single pages among them begin.
class PromotionPolicy::Plan {
public:
    Plan(TimeNs time, std::span<Move> out) : time_(time), tick_(tick_of(time)), out_(out), limit_(out.size()) {}

    Tick now() const { return tick_; }
    bool full() const { return count_ == limit_; }
    size_t count() const { return count_; }
    size_t places() const { return out_.size(); }
    size_t demotions() const { return demotions_; }
    // At most so many moves until the next call.
    void limit(size_t moves) { limit_ = moves; }
    void add(uintptr_t address, uint32_t pages, NodeId target, MoveRule rule, MoveKind kind = MoveKind::kPromote) {
        out_[count_++] = {
            .address = address, .pages = pages, .target = target, .rule = rule, .planned = time_, .kind = kind};
        demotions_ += kind == MoveKind::kDemote;
    }
    // The page after the last move's, to the same place: one move more is not needed.
    bool extend(uintptr_t address, NodeId target) {
        if (count_ == 0) return false;
        Move& last = out_[count_ - 1];
        const bool adjacent = last.rule == MoveRule::kPage && last.target == target &&
                              last.kind == MoveKind::kPromote && last.address + last.pages * kPageBytes == address &&
                              chunk_of(last.address) == chunk_of(address);
        if (adjacent) ++last.pages;
        return adjacent;
    }
    void group_by_target(size_t first) {
        std::sort(out_.begin() + static_cast<ptrdiff_t>(first), out_.begin() + static_cast<ptrdiff_t>(count_),
                  [](const Move& a, const Move& b) {
                      return a.target != b.target ? a.target < b.target : a.address < b.address;
                  });
    }

private:
    TimeNs time_;
    Tick tick_;
    std::span<Move> out_;
    size_t limit_;
    size_t count_ = 0;
    size_t demotions_ = 0;
};

PromotionPolicy::PromotionPolicy(const Topology& topology, const PolicyParameters& parameters,
                                 std::span<std::byte> storage, const ObjectSource* objects)
    : parameters_(parameters),
      heat_(storage, parameters.heat_rules()),
      objects_(parameters.heat_rules()),
      object_source_(objects),
      targets_(topology, parameters.target, parameters.fixed_target),
      exchange_(parameters.demote),
      settle_(parameters.settle_ticks()),
      collect_(ticks_of_ms(parameters.collect_ms)),
      cool_down_(ticks_of_ms(parameters.cool_down_ms)) {
    capacity_.set_limit(parameters.dram_limit_bytes);
    if (parameters.misplaced) rehome_.emplace();
}

// ---- samples

// Only DRAM and extension memory tell where a page is; a store or a cache hit does not.
inline void PromotionPolicy::note_tier(ChunkHeader& header, PageRecord& page, const Sample& sample) {
    if (sample.served_by == ServedBy::kDram) {
        header.dram_seen = 1;
        ledger_.earned(header);
        header.set_top(page, true);
        if (page.page_state() == PageState::kHeld) header.set_state(page, PageState::kCold);
        return;
    }
    if (sample.served_by != ServedBy::kExtMem) return;
    // A sample taken before the last move of the chunk, read from its ring after it.
    if (page.top && later_by(tick_of(sample.time), header.moved) <= 0) return;
    header.lower_seen = 1;
    if (page.top) {
        if (page.page_state() == PageState::kRefused)
            header.set_state(page, PageState::kCold);    // to be demoted, then
        header.doubtful = 1;
        ++counters_.pages_returned;
    }
    header.set_top(page, false);
}

void PromotionPolicy::note_hot(Block block, PageRecord& page) {
    ChunkHeader& header = heat_.header(block);
    const bool was_cooling = page.page_state() == PageState::kCooling && later_by(header.last, header.retry) >= 0;
    if (was_cooling) header.set_state(page, PageState::kCold);
    // While the top tier is full, demoted pages are the exchange's.
    if (page.page_state() == PageState::kDemoted && page.freq >= kReturnSamples && !capacity_.tight()) {
        ledger_.came_back();
        header.set_state(page, PageState::kCold);
    }
    if (page.top || page.page_state() != PageState::kCold || !heat_.rules().is_hot(page.freq)) return;
    if (was_cooling) header.retries = 0;
    if (header.held == 0) header.first_held = header.last;
    header.set_state(page, PageState::kHeld);
    heat_.list(block);
}

bool PromotionPolicy::record(const Sample& sample) {
    const Tick tick = tick_of(sample.time);
    const Block block = obtain(sample.address, tick);
    if (block == HeatTable::kNoBlock) return false;
    const unsigned index = index_of(sample);
    const uint8_t caller = targets_.caller(sample.node);
    heat_.advance(block, tick);
    ChunkHeader& header = heat_.header(block);
    PageRecord& record = heat_.pages(block)[index];
    PageRecord page = record;    // one load and one store: the bit fields are worked on in a register
    header.rotate(header.last, heat_.rules());
    exchange_.sampled(header, page, heat_.rules());
    heat_.heat(header, page, index, caller);
    objects_.count(header.object, header.chunk, caller, header.samples[0] == 1, header.last);
    header.huge = sample.huge;
    note_tier(header, page, sample);
    if (rehome_ && sample.served_by == ServedBy::kDram)
        rehome_->note(header.chunk, index, caller, sample.remote, heat_.rules(), tick);
    record = page;
    if (!page.top || page.page_state() != PageState::kCold) note_hot(block, record);    // else it is at home
    note_evidence(block, sample);
    ++counters_.recorded;
    return true;
}

HeatTable::Block PromotionPolicy::obtain(uintptr_t address, Tick now) {
    const uint64_t chunk = address / kChunkBytes;
    const Block known = heat_.find(chunk);
    if (known != HeatTable::kNoBlock) return known;
    const Block block = heat_.obtain(chunk, now);
    if (block != HeatTable::kNoBlock && object_source_ != nullptr)
        heat_.header(block).object = objects_.number_of(object_source_->object_at(address), now);
    return block;
}

size_t PromotionPolicy::record(std::span<const Sample> samples) {
    size_t recorded = 0;
    for (size_t i = 0; i < samples.size() + 2 * kAhead; ++i) {
        if (i < samples.size()) heat_.prefetch_index(samples[i].address / kChunkBytes);
        if (i >= kAhead && i - kAhead < samples.size()) {
            const Sample& soon = samples[i - kAhead];
            heat_.prefetch_heat(soon.address / kChunkBytes, index_of(soon));
        }
        if (i >= 2 * kAhead) recorded += record(samples[i - 2 * kAhead]);
    }
    return recorded;
}

// A chunk may be a candidate without a hot page: at threshold 2, of 20 samples in 512 pages hardly two meet.
void PromotionPolicy::note_evidence(Block block, const Sample& sample) {
    const ChunkHeader& header = heat_.header(block);
    if (header.whole || sample.served_by == ServedBy::kDram || seems_at_home(header)) return;
    if (header.evidence(heat_.rules()) >= (header.object != 0 ? 1 : kTwiceVouchedPages)) heat_.list(block);
}

const ChunkHeader* PromotionPolicy::find_header(uint64_t chunk) const {
    const Block block = heat_.find(chunk);
    return block == HeatTable::kNoBlock ? nullptr : &heat_.header(block);
}

// ---- the decision for a chunk

PromotionPolicy::Verdict PromotionPolicy::judge(Block block, Tick now) {
    ChunkHeader& header = heat_.header(block);
    if (header.chunk == ChunkHeader::kNoChunk) return Verdict::kNothing;
    header.rotate(now, heat_.rules());
    if (header.whole_pending) return Verdict::kWhole;
    const bool retries = header.whole && !header.retrying && header.cooling > 0 && header.retries < kChunkRetries;
    if (retries && later_by(now, header.retry) >= 0) return Verdict::kRetry;
    if (header.huge) return judge_huge(header, now);
    const Tick since = header.held > 0 ? header.first_held : header.evidence_start(heat_.rules());
    const bool settled = later_by(now, since + settle_) >= 0;
    const unsigned vouchers = vouchers_of(header);
    // Of a chunk that went whole, pages that came or went since are what counts.
    const bool is_new = !header.whole || header.doubtful || header.held > 0;
    if (is_new && is_uniformly_hot(header, vouchers)) {
        if (vouchers < kObjectVouches && is_swept(block))
            return has_passed(header, now) ? Verdict::kPassed : Verdict::kHold;
        return pays_whole(header, now) ? judge_hot_chunk(block, vouchers, settled) : Verdict::kHold;
    }
    if (header.held == 0) return retries ? Verdict::kHold : Verdict::kNothing;
    return judge_pages(block, settled, now);
}

// A huge page has one record, which tells no order: many samples within a moment are a sweep's.
PromotionPolicy::Verdict PromotionPolicy::judge_huge(const ChunkHeader& header, Tick now) const {
    if (header.held == 0) return Verdict::kNothing;
    if (header.planned > 0) return Verdict::kHold;    // while it was in base pages: that comes back first
    const auto lasted = static_cast<uint16_t>(header.newest - header.active_since);
    if (header.window_samples() < kSweepPages || lasted >= kHugeReuse) return Verdict::kHuge;
    return has_passed(header, now) ? Verdict::kPassed : Verdict::kHold;
}

PromotionPolicy::Verdict PromotionPolicy::judge_pages(Block block, bool settled, Tick now) const {
    const ChunkHeader& header = heat_.header(block);
    const uint32_t samples = header.window_samples();
    if (samples >= kSkewSamples && is_skewed(samples, header.window_pages())) return Verdict::kPages;
    if (!settled || is_promising(header, now)) return Verdict::kHold;
    if (seems_at_home(header) || !is_swept(block)) return Verdict::kPages;
    return has_passed(header, now) ? Verdict::kPassed : Verdict::kHold;
}

// One node for all of it, or every page to its own. An open question waits for more samples, but not for ever.
PromotionPolicy::Verdict PromotionPolicy::judge_hot_chunk(Block block, unsigned vouchers, bool settled) const {
    const ChunkHeader& header = heat_.header(block);
    if (!targets_.depends_on_caller()) return Verdict::kWhole;
    const Agreement agreement = header.majority().agreement;
    if (agreement == Agreement::kNone) return Verdict::kPages;
    return agreement == Agreement::kClear || vouchers > 0 || settled ? Verdict::kWhole : Verdict::kHold;
}

// How many of the two neighbouring chunks went whole to the node that uses this one most; three when its object is hot.
unsigned PromotionPolicy::vouchers_of(const ChunkHeader& header) const {
    const uint8_t caller = header.majority().caller;
    if (objects_.vouches(header.object, header.chunk, caller)) return kObjectVouches;
    if (header.evidence(heat_.rules()) < kTwiceVouchedPages) return 0;    // too little for any other, and two look-ups
    const auto vouches = [&](uint64_t chunk) {
        const Block block = heat_.find(chunk);
        if (block == HeatTable::kNoBlock) return 0u;
        const ChunkHeader& neighbour = heat_.header(block);
        return static_cast<unsigned>(neighbour.whole && !neighbour.doubtful && neighbour.majority().caller == caller);
    };
    return vouches(header.chunk - 1) + vouches(header.chunk + 1);
}

// Counts pages that came home already: they are as good a sign as the others that the rest is hot too.
bool PromotionPolicy::is_uniformly_hot(const ChunkHeader& header, unsigned vouchers) const {
    constexpr unsigned kPages[] = {kChunkPages, kVouchedPages, kTwiceVouchedPages, 1};
    constexpr unsigned kSpread[] = {kChunkRegions, kVouchedRegions, kTwiceVouchedRegions, 1};
    return !seems_at_home(header) && header.evidence(heat_.rules()) >= kPages[vouchers] &&
           header.regions() >= kSpread[vouchers] && !is_skewed(header.window_samples(), header.window_pages());
}

// Whether the times of the last samples, in the order of the addresses, both rise and fall at least so often, or a
// quarter of the pages was sampled twice and none of them only at the very start. The front of a sweep leaves rising
// (or falling) times behind it; random access leaves a mixture, a second sweep over the first one or the other. Eight
// samples at random in different 16 ms turn once or not at all in one chunk of 80.
bool PromotionPolicy::is_revisited(Block block, unsigned turns) const {
    const ChunkHeader& header = heat_.header(block);
    // At threshold 1 a single sample is heat, so all that is remembered (131 s and more) tells of an earlier sweep.
    const HeatRules& rules = heat_.rules();
    const bool any_age = rules.threshold == 1;
    unsigned earlier = 0, later = 0, pages = 0, twice = 0;
    Tick oldest = header.last;
    const Tick first = header.half_start - rules.half;
    Tick previous = 0;
    for (const PageRecord& page : heat_.pages(block)) {
        if (page.freq == 0) continue;
        const Tick tick = header.last_sample(page);
        if (!any_age && later_by(tick, first) < 0) continue;
        const int32_t step = pages > 0 ? later_by(tick, previous) : 0;
        earlier += step < 0;
        later += step > 0;
        previous = tick;
        ++pages;
        twice += page.freq > 1;
        if (later_by(oldest, tick) > 0) oldest = tick;
    }
    const bool overtaken = later_by(oldest, header.active_since) >= kOvertaken;
    return std::min(earlier, later) >= turns || (overtaken && 4 * twice >= pages);
}

// Used once, from one end to the other, as far as its samples tell. Few samples tell nothing.
bool PromotionPolicy::is_swept(Block block) const {
    const ChunkHeader& header = heat_.header(block);
    const unsigned pages = header.window_pages();
    return pages >= kSweepPages && !is_revisited(block, pages >= kChunkPages ? 2 : 1);
}

// No sample for a settling time.
bool PromotionPolicy::has_passed(const ChunkHeader& header, Tick now) const {
    return static_cast<int16_t>(static_cast<uint16_t>(now) - header.newest) >= static_cast<int32_t>(settle_);
}

bool PromotionPolicy::pays_whole(const ChunkHeader& header, Tick now) const {
    return pays(economy_, kPagesPerChunk, header.window_samples(), now - header.evidence_start(heat_.rules()),
                now - header.active_since);
}

// Whether sampled pages turn up fast enough, and spread enough, to satisfy the chunk rule within the window. Without
// this, chunks sampled less than 8 times in the settling time would go page by page, which costs several times more a
// page.
bool PromotionPolicy::is_promising(const ChunkHeader& header, Tick now) const {
    const uint64_t pages = header.evidence(heat_.rules());
    if (seems_at_home(header) || pages >= kChunkPages || uint64_t{header.regions()} * 2 < pages) return false;
    const Tick elapsed = now - header.evidence_start(heat_.rules());
    return pages * heat_.rules().window >= uint64_t{kChunkPages} * elapsed;
}

// ---- planning

size_t PromotionPolicy::plan(TimeNs now, std::span<Move> out) {
    if (out.empty() || !is_worthwhile()) return 0;
    Plan plan(now, out);
    // While no node takes anything, what is listed only needs to be thinned out, and to say that there still is
    // something.
    const bool shut = capacity_.open_for(1) == 0;
    if (!shut || later_by(plan.now(), thinned_ + kThinOut) >= 0) {
        thinned_ = plan.now();
        plan_listed(plan);
    }
    plan_exchange(plan);
    plan_rehoming(plan);
    return plan.count();
}

void PromotionPolicy::plan_listed(Plan& plan) {
    objects_.look(plan.now(), economy_, [this](uint64_t chunk) { return find_header(chunk); });
    const Sorted sorted = sort_list(plan.now());
    const auto listed = heat_.listed();
    const auto ranges = listed.first(sorted.ranges);
    const auto pages = listed.subspan(sorted.ranges, sorted.pages - sorted.ranges);
    const bool pages_due = pages_are_due(sorted.waiting, plan.now());
    // Ranges bring 512 pages for one move; a quarter of the places is kept for pages, which are hotter one by one.
    plan.limit(pages_due ? plan.places() - plan.places() / 4 : plan.places());
    put_hottest_first(ranges, plan.places());
    for (const Block block : ranges) {
        if (plan.full()) break;
        const Verdict verdict = judge(block, plan.now());
        if (verdict == Verdict::kHuge) plan_huge(block, plan, Filler::kRules);
        if (verdict == Verdict::kWhole) plan_runs(block, PageState::kCold, plan);
        if (verdict == Verdict::kRetry) plan_runs(block, PageState::kCooling, plan);
    }
    plan.limit(plan.places());
    if (!pages_due) return;
    const size_t first_page = plan.count();
    put_hottest_first(pages, plan.places());
    for (const Block block : pages) {
        if (plan.full()) break;
        plan_pages(block, plan);
    }
    plan.group_by_target(first_page);
}

// Not when the lower tier answers as fast as DRAM does, as it may while DRAM's bandwidth is used up. Heat waits.
bool PromotionPolicy::is_worthwhile() const { return !economy_.gain_known || economy_.sample_gain_ns > 0; }

// What is in DRAM already comes last: it has less to gain. Where DRAM is short, its room is for what is not.
void PromotionPolicy::plan_rehoming(Plan& plan) {
    if (!rehome_) return;
    plan.limit(plan.places());
    const auto add = [&](uintptr_t address, uint32_t pages, NodeId target, MoveRule rule) {
        if (plan.full()) return false;
        plan.add(address, pages, target, rule, MoveKind::kRehome);
        return true;
    };
    rehome_->plan(heat_, targets_, capacity_.open_for(kPagesPerChunk), plan.now(), add);
}

// Three-way partition of a slice of the list in place, dropping what has nothing to do any more. The slices take turns:
// what was looked at last time goes to the end.
PromotionPolicy::Sorted PromotionPolicy::sort_list(Tick now) {
    Sorted sorted;
    const auto listed = heat_.listed();
    const size_t due = std::clamp<size_t>(size_t{now - judged_at_} * kJudgedPerTick, kJudgedPerTick, kMostJudged);
    const size_t slice = std::min(listed.size(), due);
    judged_at_ = now;
    if (slice < listed.size())
        std::rotate(listed.begin(), listed.begin() + static_cast<ptrdiff_t>(judged_), listed.end());
    size_t kept = 0;
    for (size_t i = 0; i < slice; ++i) {
        if (i + kAhead < slice) heat_.prefetch_header(listed[i + kAhead]);
        const Block block = listed[i];
        const Verdict verdict = judge(block, now);
        if (verdict == Verdict::kPassed) drop_swept_pages(block);
        // Dropped entries gather at the end, where keep() cuts them off; each is swapped there at most once.
        if (verdict == Verdict::kNothing || verdict == Verdict::kPassed) continue;
        std::swap(listed[kept], listed[i]);
        size_t place = kept++;
        if (verdict == Verdict::kHold) continue;
        std::swap(listed[place], listed[sorted.pages]);
        place = sorted.pages++;
        if (verdict == Verdict::kPages) {
            sorted.waiting += heat_.header(block).held;
            continue;
        }
        std::swap(listed[place], listed[sorted.ranges++]);
    }
    std::rotate(listed.begin() + static_cast<ptrdiff_t>(kept), listed.begin() + static_cast<ptrdiff_t>(slice),
                listed.end());
    heat_.keep(listed.size() - slice + kept);
    judged_ = kept;
    return sorted;
}

void PromotionPolicy::put_hottest_first(std::span<Block> blocks, size_t wanted) const {
    const auto middle = blocks.begin() + static_cast<ptrdiff_t>(std::min(wanted, blocks.size()));
    std::partial_sort(blocks.begin(), middle, blocks.end(), [&](Block a, Block b) {
        const ChunkHeader& left = heat_.header(a);
        const ChunkHeader& right = heat_.header(b);
        if (left.window_samples() != right.window_samples()) return left.window_samples() > right.window_samples();
        return left.chunk < right.chunk;
    });
}

bool PromotionPolicy::pages_are_due(uint32_t waiting, Tick now) {
    if (waiting == 0) {
        waiting_ = false;
        return false;
    }
    if (!waiting_) waiting_since_ = now;
    waiting_ = true;
    const bool due = waiting >= parameters_.batch_pages || later_by(now, waiting_since_ + collect_) >= 0;
    if (due) waiting_ = false;
    return due;
}

NodeId PromotionPolicy::choose_target(uint8_t caller, uint32_t pages, Filler filler, Tick now) {
    const bool exchanging = filler == Filler::kExchange;
    const uint64_t open = exchanging ? capacity_.open_for_exchange(pages) : capacity_.open_for(pages);
    const NodeId target = targets_.choose(caller, now, open);
    if (!target.valid() && !exchanging) capacity_.note_shortage(pages, now);
    return target;
}

void PromotionPolicy::set_planned(ChunkHeader& header, PageRecord& page) {
    if (page.page_state() == PageState::kDemoted) ledger_.came_back();
    header.set_state(page, PageState::kPlanned);
}

bool PromotionPolicy::plan_huge(Block block, Plan& plan, Filler filler) {
    ChunkHeader& header = heat_.header(block);
    const NodeId target = choose_target(header.majority().caller, kPagesPerChunk, filler, plan.now());
    if (!target.valid()) return false;
    // All of it, in case it is split meanwhile and its pages are sampled one by one.
    for (PageRecord& page : heat_.pages(block)) set_planned(header, page);
    plan.add(address_of(header, 0), kPagesPerChunk, target, MoveRule::kHuge);
    capacity_.planned(MoveKind::kPromote, target, kPagesPerChunk);
    counters_.pages_planned[static_cast<size_t>(MoveRule::kHuge)] += kPagesPerChunk;
    return true;
}

// All pages of a chunk that are in the state `wanted` (cold means cold or held) and not known to be at home, in as few
// moves as possible: pages at home in between are no gap, since asking the kernel for them is cheaper than a move more.
// Of cooling pages that were tried twice, one.
void PromotionPolicy::plan_runs(Block block, PageState wanted, Plan& plan) {
    ChunkHeader& header = heat_.header(block);
    const uint32_t most = kPagesPerChunk - (header.doubtful ? 0u : header.top);
    const NodeId target = choose_target(header.majority().caller, most, Filler::kRules, plan.now());
    if (!target.valid()) return;
    if (wanted == PageState::kCooling) {
        header.retries = (header.retries + 1) & 3;
    } else if (!header.whole_pending) {
        header.whole = header.whole_pending = 1;
        header.retries = 0;
        header.judged = 0;
        ++counters_.chunks_planned;
    }
    const auto pages = heat_.pages(block);
    const auto is_gap = [&](const PageRecord& page) {
        const PageState state = page.page_state();
        return state != wanted && !(wanted == PageState::kCold && may_be_planned(state));
    };
    const auto is_at_home = [&](const PageRecord& page) { return page.top && !header.doubtful; };
    for (unsigned begin = 0; begin < kPagesPerChunk;) {
        if (is_gap(pages[begin]) || is_at_home(pages[begin])) {
            ++begin;
            continue;
        }
        if (plan.full()) return;    // whole_pending, or the pages still cooling, bring us here again
        unsigned end = begin;
        for (unsigned i = begin; i < kPagesPerChunk && !is_gap(pages[i]); ++i)
            if (!is_at_home(pages[i])) end = i + 1;
        const bool one_will_do = wanted == PageState::kCooling && header.setbacks > 1;
        if (one_will_do) end = begin + 1;
        for (unsigned i = begin; i < end; ++i) set_planned(header, pages[i]);
        plan.add(address_of(header, begin), end - begin, target, MoveRule::kChunk);
        capacity_.planned(MoveKind::kPromote, target, end - begin);
        counters_.pages_planned[static_cast<size_t>(MoveRule::kChunk)] += end - begin;
        header.retrying = wanted == PageState::kCooling;
        if (one_will_do) break;
        begin = end;
    }
    header.whole_pending = header.doubtful = header.lower_seen = header.dram_seen = 0;
}

void PromotionPolicy::plan_pages(Block block, Plan& plan) {
    drop_cold_pages(block, plan.now());
    const auto pages = heat_.pages(block);
    for (unsigned i = 0; i < kPagesPerChunk; ++i)
        if (pages[i].page_state() == PageState::kHeld && !plan_page(block, i, plan, Filler::kRules)) return;
}

bool PromotionPolicy::plan_page(Block block, unsigned index, Plan& plan, Filler filler) {
    ChunkHeader& header = heat_.header(block);
    PageRecord& page = heat_.pages(block)[index];
    const uint8_t caller = page.margin > 0 ? static_cast<uint8_t>(page.node) : header.majority().caller;
    const NodeId target = choose_target(caller, 1, filler, plan.now());
    if (!target.valid()) return false;
    const uintptr_t address = address_of(header, index);
    if (!plan.extend(address, target)) {
        if (plan.full()) return false;
        plan.add(address, 1, target, MoveRule::kPage);
    }
    capacity_.planned(MoveKind::kPromote, target, 1);
    set_planned(header, page);
    ++counters_.pages_planned[static_cast<size_t>(MoveRule::kPage)];
    return true;
}

void PromotionPolicy::drop_cold_pages(Block block, Tick now) {
    ChunkHeader& header = heat_.header(block);
    const auto limit = static_cast<int32_t>(kHeldWindows * heat_.rules().window);
    for (PageRecord& page : heat_.pages(block)) {
        if (page.page_state() != PageState::kHeld || later_by(now, header.last_sample(page)) <= limit) continue;
        header.set_state(page, PageState::kCold);
        ++counters_.pages_expired;
    }
}

void PromotionPolicy::drop_swept_pages(Block block) {
    ChunkHeader& header = heat_.header(block);
    counters_.pages_swept += header.held;
    for (PageRecord& page : heat_.pages(block))
        if (page.page_state() == PageState::kHeld) header.set_state(page, PageState::kCold);
}

// ---- the exchange

void PromotionPolicy::plan_exchange(Plan& plan) {
    const size_t first = plan.count();
    const auto take = [&](MoveKind kind, Block block, unsigned begin, uint32_t count) {
        return exchange(kind, block, begin, count, plan);
    };
    exchange_.go_on(heat_, capacity_, ledger_, economy_, plan.now(), take);
    plan.group_by_target(first);    // demotions, which name none, come first: they make the room
}

uint32_t PromotionPolicy::exchange(MoveKind kind, Block block, unsigned begin, uint32_t count, Plan& plan) {
    if (kind == MoveKind::kDemote) return plan_demotion(block, begin, count, plan);
    if (heat_.header(block).huge) return !plan.full() && plan_huge(block, plan, Filler::kExchange) ? count : 0;
    uint32_t planned = 0;
    while (planned < count && plan_page(block, begin + planned, plan, Filler::kExchange)) ++planned;
    return planned;
}

// Demotions leave half of the places to promotions: hot pages are scattered more often than cold ones.
uint32_t PromotionPolicy::plan_demotion(Block block, unsigned begin, uint32_t count, Plan& plan) {
    if (plan.demotions() >= plan.places() / 2 || plan.full()) return 0;
    ChunkHeader& header = heat_.header(block);
    const auto pages = heat_.pages(block);
    for (unsigned i = begin; i < begin + count; ++i)
        if (may_be_planned(pages[i].page_state())) header.set_state(pages[i], PageState::kPlanned);
    plan.add(address_of(header, begin), count, kNoNode, header.huge ? MoveRule::kHuge : MoveRule::kPage,
             MoveKind::kDemote);
    capacity_.planned(MoveKind::kDemote, kNoNode, count);
    counters_.demotions_planned += count;
    return count;
}

void PromotionPolicy::found(uintptr_t address, bool in_top_tier, TimeNs now) {
    const uint64_t chunk = address / kChunkBytes;
    Block block = heat_.find(chunk);
    const bool is_news = block == HeatTable::kNoBlock && in_top_tier && heat_.has_free_block();
    if (is_news) block = heat_.obtain(chunk, tick_of(now));
    if (block == HeatTable::kNoBlock) return;
    ChunkHeader& header = heat_.header(block);
    PageRecord& page = heat_.pages(block)[page_in_chunk(address)];
    if (header.huge || page.level_seen) return;
    if (in_top_tier && is_news) header.dram_seen = 1;
    header.set_top(page, in_top_tier);
}

// ---- outcomes

void PromotionPolicy::report(const MoveOutcome& outcome) {
    const Tick now = tick_of(outcome.time);
    capacity_.reported(outcome, now + cool_down_);
    // Where free memory is read, the next reading tells whether the node still is full.
    const Tick full_for = capacity_.knows(outcome.target) ? collect_ : cool_down_;
    if (outcome.outcome == PageOutcome::kNoMemory) targets_.mark_full(outcome.target, now + full_for);
    const uintptr_t end = outcome.address + uintptr_t{outcome.pages} * kPageBytes;
    for (uintptr_t address = outcome.address; address < end;) {
        const uintptr_t next = std::min(end, chunk_of(address) + kChunkBytes);
        const Block block = heat_.find(address / kChunkBytes);
        if (block == HeatTable::kNoBlock) {
            counters_.outcomes_unknown += (next - address) / kPageBytes;
        } else {
            heat_.advance(block, now);
            for (; address < next; address += kPageBytes) report_page(block, page_in_chunk(address), outcome);
        }
        address = next;
    }
}

void PromotionPolicy::report_page(Block block, unsigned index, const MoveOutcome& outcome) {
    ChunkHeader& header = heat_.header(block);
    PageRecord& page = heat_.pages(block)[index];
    const Tick now = tick_of(outcome.time);
    const bool was_retry = header.retrying;
    header.retrying = 0;
    switch (outcome.outcome) {
        case PageOutcome::kPromoted:
        case PageOutcome::kAtTarget:
        case PageOutcome::kDemoted:
        case PageOutcome::kRehomed:
        case PageOutcome::kElsewhere:
            if (outcome.outcome == PageOutcome::kPromoted) ledger_.promoted(header);
            if (outcome.in_top_tier()) header.moved = now;
            header.set_top(page, outcome.in_top_tier());
            header.set_state(page, PageState::kCold);
            if (outcome.outcome == PageOutcome::kDemoted) note_demoted(block, index, now);
            note_moved(block, now, was_retry);
            return;
        case PageOutcome::kAbsent:
            heat_.reset_page(block, index);
            // Thought to be in the top tier like the rest of its chunk: once is enough.
            if (outcome.kind == MoveKind::kDemote) header.set_top(page, false);
            return;
        case PageOutcome::kBusy:
        case PageOutcome::kNoMemory:
            // A full node may have room again at any time; how long a page is busy is told by how long it was.
            if (outcome.outcome == PageOutcome::kBusy)
                put_off(header, now);
            else
                header.retry = now + cool_down_;
            header.set_state(page, PageState::kCooling);
            if (header.whole && outcome.kind == MoveKind::kPromote) heat_.list(block);
            return;
        case PageOutcome::kRefused:
            header.set_state(page, PageState::kRefused);
            return;
        case PageOutcome::kNotTried:
            header.set_state(page, PageState::kCold);
            note_hot(block, page);    // still hot: a candidate again
            return;
    }
}

void PromotionPolicy::note_demoted(Block block, unsigned index, Tick now) {
    ChunkHeader& header = heat_.header(block);
    ledger_.demoted(header);
    heat_.cool_page(block, index, now);
    header.set_state(heat_.pages(block)[index], PageState::kDemoted);
}

// A page of the chunk went where it should. If it is one that had been put off, the others may follow; of a chunk that
// is planned page by page any page will do that is tried after the cool-down.
void PromotionPolicy::note_moved(Block block, Tick now, bool was_retry) {
    ChunkHeader& header = heat_.header(block);
    if (header.setbacks == 0 || later_by(now, header.retry) < 0) return;
    if (header.whole && !was_retry) return;
    header.setbacks = header.retries = 0;
    header.retry = now;
    if (header.whole && header.cooling > 0) heat_.list(block);
}

// All pages of one try are put off together.
void PromotionPolicy::put_off(ChunkHeader& header, Tick now) {
    if (header.setbacks > 0 && later_by(now, header.retry) < 0) return;
    header.retry = now + (cool_down_ << header.setbacks);
    if (header.setbacks < kMostSetbacks) header.setbacks = (header.setbacks + 1) & 7;
}

void PromotionPolicy::forget(uintptr_t begin, uintptr_t end) {
    if (begin >= end) return;
    const auto forget_in = [&](Block block) {
        const uintptr_t start = address_of(heat_.header(block), 0);
        if (begin <= start && end - start >= kChunkBytes) {
            ledger_.forgotten(heat_.header(block));
            heat_.release(block);
            return;
        }
        const uintptr_t from = std::max(start, page_of(begin));
        const uintptr_t to = std::min(start + kChunkBytes, end);
        for (uintptr_t address = from; address < to; address += kPageBytes)
            heat_.reset_page(block, page_in_chunk(address));
    };
    const uint64_t first = begin / kChunkBytes;
    const uint64_t last = (end - 1) / kChunkBytes;
    // A range larger than the table: look at what the table holds instead.
    if (last - first > heat_.chunks()) {
        for (Block block = 0; block < heat_.blocks_used(); ++block)
            if (const uint64_t chunk = heat_.header(block).chunk; first <= chunk && chunk <= last) forget_in(block);
        return;
    }
    for (uint64_t chunk = first; chunk <= last; ++chunk)
        if (const Block block = heat_.find(chunk); block != HeatTable::kNoBlock) forget_in(block);
}

}    // namespace pghot
