// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "runtime/base/topology.h"
#include "runtime/policy/capacity.h"
#include "runtime/policy/exchange.h"
#include "runtime/policy/heat_table.h"
#include "runtime/policy/ledger.h"
#include "runtime/policy/move.h"
#include "runtime/policy/object_heat.h"
#include "runtime/policy/parameters.h"
#include "runtime/policy/payback.h"
#include "runtime/policy/rehome.h"
#include "runtime/policy/sample.h"
#include "runtime/policy/target_map.h"

namespace pghot {

// Different sampled pages that make a whole chunk a candidate, with freq_threshold times as many samples. The
// prototype's figure: with 8 sampled pages a chunk, whole chunks beat the kernel's NUMAB2 by 1.3x, page-at-a-time moves
// lost to no tiering at all. One page in 64: fewer would let a few hot pages pull in a cold chunk; each more delays
// every uniform chunk, by 30 ms at the published rate of 2,115 samples a second over 64 chunks.
inline constexpr unsigned kChunkPages = 8;
// Regions of 64 pages that must hold one of them. Eight pages at random miss this in 2 % of the cases (and then pass
// with the ninth or tenth), an array of up to 129 pages always.
inline constexpr unsigned kChunkRegions = 4;
// The same for a chunk one of whose neighbours in the address space went whole to the same node, and for one between
// two such: arrays are longer than 2 MiB, so heat that was uniform next door most likely is here. Skewed chunks still
// fail. A chunk of an object that is hot all over (ObjectHeat) needs no more than its own first page.
inline constexpr unsigned kVouchedPages = 4;
inline constexpr unsigned kVouchedRegions = 3;
inline constexpr unsigned kTwiceVouchedPages = 3;
inline constexpr unsigned kTwiceVouchedRegions = 2;
inline constexpr unsigned kObjectVouches = 3;
// Pages that a sweep leaves behind in a chunk: from so many on it shows whether their order in time is that of their
// addresses.
inline constexpr unsigned kSweepPages = 4;
// By so much the oldest of the pages' last samples must be later than the first sample of the chunk, for pages with two
// samples to tell of a second sweep: a slow one leaves two in many of its pages, but within a moment.
inline constexpr int32_t kOvertaken = 2;    // ticks: a page for 16 ms and longer is 256 KB/s
// From so many samples on, those of a huge page must lie so far apart to be more than one sweep's: a thread passes over
// 2 MiB within 1 to 20 ms, one that waits 500 ns for each line included.
inline constexpr Tick kHugeReuse = ticks_of_ms(64);
// Samples before a chunk is called skewed: from here on, uniform access touches at least half as many different pages
// as samples, except once in 10^10 chunks.
inline constexpr unsigned kSkewSamples = 8;
// Tries, one a cool-down, for pages that were busy when their chunk was moved whole. New heat of such a page allows as
// many again.
inline constexpr unsigned kChunkRetries = 3;
// A cool-down is doubled so many times at most: 80 s by default. Pages that a forked child shares are busy as long as
// it lives. From the second try on only one page of a chunk is tried, which takes some 5 us: for 10,000 chunks (20 GB)
// that is less than a thousandth of the mover's time, and 80 s after the child has gone all of them are on their way.
inline constexpr unsigned kMostSetbacks = 4;
// Listed chunks that are looked at in 16 ms, and by one plan() at most; of more, others each time. Looking at all
// 100,000 of a program of 200 GiB each 100 ms took a fifth of a core (published_scale).
inline constexpr size_t kJudgedPerTick = 512;
inline constexpr size_t kMostJudged = 4096;
// Held pages that could not be planned for so many windows are hot no more.
inline constexpr unsigned kHeldWindows = 2;

// What the policy counted. The engine adds them to the counters of the report.
struct PolicyCounters {
    uint64_t recorded = 0;                      // samples that went into the heat table
    uint64_t chunks_planned = 0;                // moves decided by the chunk rule, whatever pages were left to move
    std::array<uint64_t, 3> pages_planned{};    // by MoveRule; promotions
    uint64_t demotions_planned = 0;             // pages
    uint64_t pages_returned = 0;                // known in the top tier, seen in the lower tier again
    uint64_t pages_expired = 0;                 // hot, but not planned before they had cooled
    uint64_t pages_swept = 0;                   // hot, but of a chunk that a single sweep passed over
    uint64_t outcomes_unknown = 0;              // pages reported whose chunk had been evicted or forgotten
};

// From samples to moves: the page rule, the chunk rule, the target. A pure function of samples, outcomes, topology and
// the times passed in: no clock, no system call, no allocation. Owned by the sampler thread.
//
//   record(sample)   heat; a page that becomes hot is held and its chunk listed
//   plan(now, out)   the listed chunks, hottest first: whole, in single pages, or held a little longer
//   report(outcome)  every page planned must come back with what became of it, or its chunk stays in the table as long
//                    as it can and the page is not planned again
class PromotionPolicy {
public:
    // `storage` is zero-filled, outlives the policy and holds the heat (HeatTable::bytes_for). `objects` outlives it
    // too; null: no object is known.
    PromotionPolicy(const Topology& topology, const PolicyParameters& parameters, std::span<std::byte> storage,
                    const ObjectSource* objects = nullptr);

    // False when the sample could not be recorded: no usable address, or no storage.
    bool record(const Sample& sample);
    // Many at once: the memory of the later ones is fetched while the earlier ones are recorded, which about halves the
    // cost where the table is larger than the caches (tests/sim/bench_heat). Answers how many were recorded.
    size_t record(std::span<const Sample> samples);
    // Writes up to out.size() moves and answers how many. Chunk and huge moves come first, hottest first, then single
    // pages by target. The library calls it at every drain, up to 50 times a second. Costs about 20 ns for a
    // listed chunk that it looks at (bench_heat), several times that where the table is larger than the caches, and 0.3
    // us for a chunk planned.
    size_t plan(TimeNs now, std::span<Move> out);
    void report(const MoveOutcome& outcome);
    // Memory was unmapped, purged or reused: its heat and placement are gone. Any range.
    void forget(uintptr_t begin, uintptr_t end);

    // What moves cost and save from now on.
    void set_economy(const MoveEconomy& economy) {
        economy_ = economy;
        ledger_.set_economy(economy);
    }
    // What room there is: read() it before plan() where wants_room(). Without readings every node has room.
    Capacity& capacity() { return capacity_; }
    bool wants_room() const { return heat_.has_listed() || capacity_.tight() || capacity_.excess() > 0; }
    // Whether found() would help: there is a limit, or cold memory is looked for.
    bool wants_census() const { return parameters_.dram_limit_bytes != 0 || capacity_.tight(); }
    // Someone asked where the page at `address` is. Of memory never sampled the policy learns in no other way.
    void found(uintptr_t address, bool in_top_tier, TimeNs now);

    const PolicyCounters& counters() const { return counters_; }
    const LedgerCounters& ledger() const { return ledger_.counters(); }
    uint64_t evictions() const { return heat_.evictions(); }
    const HeatTable& heat() const { return heat_; }

private:
    using Block = HeatTable::Block;

    // What is to be done with a listed chunk.
    enum class Verdict : uint8_t {
        kNothing,    // off the list
        kHold,       // not yet
        kHuge,
        kWhole,
        kRetry,     // its cooling pages again
        kPages,     // its held pages, one by one
        kPassed,    // a sweep has passed: nothing of it is hot
    };
    // A slice of the list, sorted: [0, ranges) planned as ranges, [ranges, pages) as pages, the rest held.
    struct Sorted {
        size_t ranges = 0;
        size_t pages = 0;
        uint32_t waiting = 0;    // pages held in [ranges, pages)
    };
    class Plan;

    Block obtain(uintptr_t address, Tick now);
    const ChunkHeader* find_header(uint64_t chunk) const;
    void note_tier(ChunkHeader& header, PageRecord& page, const Sample& sample);
    void note_hot(Block block, PageRecord& page);
    void note_evidence(Block block, const Sample& sample);
    void report_page(Block block, unsigned index, const MoveOutcome& outcome);
    void note_demoted(Block block, unsigned index, Tick now);
    void note_moved(Block block, Tick now, bool was_retry);
    void put_off(ChunkHeader& header, Tick now);

    Verdict judge(Block block, Tick now);
    Verdict judge_hot_chunk(Block block, unsigned vouchers, bool settled) const;
    Verdict judge_huge(const ChunkHeader& header, Tick now) const;
    Verdict judge_pages(Block block, bool settled, Tick now) const;
    unsigned vouchers_of(const ChunkHeader& header) const;
    bool is_uniformly_hot(const ChunkHeader& header, unsigned vouchers) const;
    bool is_revisited(Block block, unsigned turns) const;
    bool is_swept(Block block) const;
    bool has_passed(const ChunkHeader& header, Tick now) const;
    bool pays_whole(const ChunkHeader& header, Tick now) const;
    bool is_promising(const ChunkHeader& header, Tick now) const;
    bool is_worthwhile() const;
    Sorted sort_list(Tick now);
    void put_hottest_first(std::span<Block> blocks, size_t wanted) const;
    bool pages_are_due(uint32_t waiting, Tick now);

    void plan_rehoming(Plan& plan);
    // The rules for chunks and pages, and the exchange: each with the nodes that it may fill.
    enum class Filler : uint8_t { kRules, kExchange };
    NodeId choose_target(uint8_t caller, uint32_t pages, Filler filler, Tick now);
    void plan_listed(Plan& plan);
    void plan_exchange(Plan& plan);
    uint32_t exchange(MoveKind kind, Block block, unsigned begin, uint32_t count, Plan& plan);
    uint32_t plan_demotion(Block block, unsigned begin, uint32_t count, Plan& plan);
    void set_planned(ChunkHeader& header, PageRecord& page);

    bool plan_huge(Block block, Plan& plan, Filler filler);
    void plan_runs(Block block, PageState wanted, Plan& plan);
    void plan_pages(Block block, Plan& plan);
    bool plan_page(Block block, unsigned index, Plan& plan, Filler filler);
    void drop_cold_pages(Block block, Tick now);
    void drop_swept_pages(Block block);

    PolicyParameters parameters_;
    HeatTable heat_;
    ObjectHeat objects_;
    const ObjectSource* object_source_;
    MoveEconomy economy_{};
    TargetMap targets_;
    Capacity capacity_;
    Exchange exchange_;
    Ledger ledger_;
    std::optional<Rehome> rehome_;    // with PGHOT_MISPLACED: 72 KiB that are not touched without
    Tick settle_;
    Tick collect_;
    Tick cool_down_;
    size_t judged_ = 0;    // chunks at the start of the list that the last plan() looked at
    Tick judged_at_ = 0;
    Tick thinned_ = 0;        // when the list was gone through, last
    bool waiting_ = false;    // single pages wait for company since...
    Tick waiting_since_ = 0;
    PolicyCounters counters_{};
};

}    // namespace pghot
