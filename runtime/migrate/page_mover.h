// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "runtime/base/counters.h"
#include "runtime/base/function_ref.h"
#include "runtime/base/topology.h"
#include "runtime/policy/move.h"

namespace pghot {

// What the mover needs of the world. In the library the kernel and the allocator's registry; in a test a table.
class MoveWorld {
public:
    // As move_pages(2): 0, pages left behind, or -errno. `targets` null asks.
    virtual long move_pages(std::span<void* const> pages, const int* targets, int* statuses) = 0;
    // Nodes that the policy of the mapping at `address` lets its pages go to by a move of this kind; 0 when it must
    // stay.
    virtual uint64_t targets_of(uintptr_t address, MoveKind kind) = 0;
    // Changes when the memory at `address` was unmapped, purged or reused (HeapExtent::generation).
    virtual uint32_t generation_of(uintptr_t address) = 0;
    // Bytes that may still be put on `node` with its headroom kept.
    virtual uint64_t room_on(NodeId node) = 0;
    // Pages went from one node to another: room is there, and taken here.
    virtual void moved(NodeId from, NodeId to, uint64_t bytes) = 0;
    virtual TimeNs now() = 0;

protected:
    ~MoveWorld() = default;
};

inline constexpr uint32_t kMaxBatchPages = 2048;    // 8 MiB of base pages
static_assert(kMaxBatchPages <= kMostOutcomePages);

// Base pages from one that is asked for its mapping's policy to the next. Asking for all of them, 0.24 us each, took a
// quarter of the mover's time in the emulated machine. What is missed is a piece of less than 64 KiB that the program
// bound by itself in the middle of a plan: its pages move once.
inline constexpr uint32_t kPolicyStride = 16;
// How long an answer about policies and reuse counts: less than a moving call takes, in which they may change as well.
inline constexpr uint64_t kChecksLastNs = 4 * kNsPerMs;

// What a moving call took.
struct MovingCall {
    uint32_t pages = 0;    // base pages that were submitted
    uint64_t ns = 0;
};

// Moves pages in batches, in two steps so that the budget can be asked in between:
//
//   add(move)...  checks that the plan still holds, asks the kernel where the pages are, keeps those that are where the
//                 kind of move takes them from
//   bytes()       what execute() would move: the caller takes that from the budget
//   execute()     checks again if that is long ago; one moving call, a second for what a pinned page held up; every
//   page
//                 gets its outcome
//
// One owner thread (pghot-mover). No allocation. Calls are few and large since each moving call costs an RCU grace
// period and a drain of every CPU.
class PageMover {
public:
    using Report = FunctionRef<void(const MoveOutcome&)>;

    PageMover(const Topology& topology, MoveWorld& world, Counters& counters)
        : topology_(topology), world_(world), counters_(counters) {}

    bool empty() const { return count_ == 0; }
    // Base pages to be moved; a huge page counts as 512.
    uint32_t pages() const { return base_pages_; }
    uint64_t bytes() const { return uint64_t{base_pages_} * kPageBytes; }
    uint32_t folios() const { return count_; }
    // Of the last execute() the first call, none if it had nothing to move.
    MovingCall last_call() const { return last_call_; }

    // False when `move` must wait for the next batch: another kind or target, or no room left. An empty batch takes
    // every move. Pages that need no move, or may not be moved, are reported at once.
    bool add(const Move& move, Report report);
    // Moves what was added; afterwards the batch is empty.
    void execute(Report report);
    // Gives the batch up: every page is reported as not tried, counted as expired. Afterwards the batch is empty.
    void drop(Report report);

private:
    // What an error of the kernel means for a page that it was asked to move. Errors are told apart for promotions
    // only.
    struct Fate {
        PageOutcome outcome;
        Counter counter;
    };
    static Fate fate_of_page(long error);
    static Fate fate_of_call(long error);

    // Where a page lies, as its move sees it.
    enum class Place : uint8_t { kSource, kTarget, kElsewhere };
    struct Entry {
        uintptr_t address;
        uint32_t generation;
        uint16_t base_pages;    // 1, or 512 for a huge page
        int16_t from;           // where it was
        int16_t node;           // where it is, as far as known
        PageOutcome outcome;
        bool pending;
        bool apart;    // a huge page whose base pages are not all on one node
    };

    NodeId origin_of(const Move& move) const;
    bool is_target(MoveKind kind, NodeId node) const;
    NodeId choose_target(const Move& move, uint64_t allowed);
    Place place_of(NodeId from, NodeId node) const;
    void ask_and_add(const Move& move, Report report);
    void add_known(const Move& move, uint32_t folios, Report report);
    void refuse(const Move& move, PageOutcome outcome, Counter counter, Report report);
    void fail(Entry& entry, PageOutcome outcome, Counter part);
    void drop_stale(Entry& entry, PageOutcome outcome);
    bool keep_if_allowed(Entry& entry);
    void drop_forbidden(uint32_t begin);
    void drop_forbidden_of_run(uint32_t begin, uint32_t end);
    void check_again();
    uint32_t gather_pending();
    long move_pending(uint32_t arguments);
    void ask_about_pending();
    long ask(uint32_t arguments);
    void settle(Entry& entry, int status);
    void count_moved(const Entry& entry);
    void confirm_huge_pages();
    void give_up_pending(const Fate& fate);
    void report_parts(const Entry& entry, const Fate& fate, Report report);
    void report_all(const Fate& fate, Report report);

    const Topology& topology_;
    MoveWorld& world_;
    Counters& counters_;
    MoveKind kind_ = MoveKind::kPromote;
    NodeId target_{};
    uint32_t count_ = 0;
    uint32_t base_pages_ = 0;
    TimeNs checked_{};    // when the oldest of the batch was
    MovingCall last_call_{};
    std::array<Entry, kMaxBatchPages> entries_{};
    std::array<void*, kMaxBatchPages> pages_{};    // arguments of the call under way
    std::array<int, kMaxBatchPages> nodes_{};
    std::array<int, kMaxBatchPages> statuses_{};
    std::array<uint32_t, kMaxBatchPages> index_{};    // entry of each argument
};

}    // namespace pghot
