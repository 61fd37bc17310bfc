// SPDX-License-Identifier: Apache-2.0
#include "runtime/migrate/page_mover.h"

#include <cerrno>

namespace pghot {
namespace {

// A status that the kernel never writes: after a call that stopped half-way it writes none for the last batch.
constexpr int kNotWritten = -4096;

// Merges neighbouring pages with the same fate into one outcome.
class OutcomeRun {
public:
    OutcomeRun(PageMover::Report report, TimeNs now, NodeId target) : report_(report), now_(now), target_(target) {}
    ~OutcomeRun() { flush(); }
    OutcomeRun(const OutcomeRun&) = delete;
    OutcomeRun& operator=(const OutcomeRun&) = delete;

    void add(uintptr_t address, uint32_t pages, PageOutcome outcome, NodeId node) {
        const uintptr_t end = run_.address + uint64_t{run_.pages} * kPageBytes;
        if (run_.pages > 0 && end == address && run_.outcome == outcome && run_.node == node) {
            run_.pages += pages;
            return;
        }
        flush();
        run_ = MoveOutcome{address, pages, outcome, node, now_, target_};
    }

private:
    void flush() {
        if (run_.pages > 0) report_(run_);
        run_.pages = 0;
    }
    PageMover::Report report_;
    TimeNs now_;
    NodeId target_;
    MoveOutcome run_{};
};

}    // namespace

// The planned node, or the nearest other top-tier node that still has room and lies nearer than the lower tier. No
// node: kNoNode.
NodeId PageMover::choose_target(const Move& move, uint64_t allowed) {
    const uint64_t bytes = uint64_t{move.pages} * kPageBytes;
    NodeId best = kNoNode;
    unsigned best_distance = ~0U;
    for (int16_t n = 0; n < topology_.node_count; ++n) {
        const NodeId node{n};
        if (!topology_.is_top(node) || (allowed >> n & 1) == 0) continue;
        const unsigned distance =
            node == move.target ? 0 : topology_.distance[static_cast<unsigned>(move.target.value)][n];
        if (distance >= best_distance || world_.room_on(node) < bytes) continue;
        best = node;
        best_distance = distance;
    }
    return best;
}

void PageMover::refuse(const Move& move, PageOutcome outcome, Counter counter, Report report) {
    counters_.add(counter, move.pages);
    if (counter == Counter::pgpromote_fail_nomem) counters_.add(Counter::pgpromote_fail, move.pages);
    report(MoveOutcome{move.address, move.pages, outcome, kNoNode, world_.now(), move.target});
}

bool PageMover::add(const Move& move, Report report) {
    const uint32_t folios = move.rule == MoveRule::kHuge ? 1 : move.pages;
    if (!empty() && (count_ + folios > kMaxBatchPages || base_pages_ + move.pages > kMaxBatchPages)) return false;
    if (!topology_.valid(move.target) || world_.generation_of(move.address) != move.heap_generation) {
        refuse(move, PageOutcome::kAbsent, Counter::pages_stale, report);
        return true;
    }
    const uint64_t allowed = world_.targets_of(move.address);
    if (allowed == 0) {
        refuse(move, PageOutcome::kAbsent, Counter::pages_stale, report);
        return true;
    }
    const NodeId target = choose_target(move, allowed);
    if (!target.valid()) {
        refuse(move, PageOutcome::kNoMemory, Counter::pgpromote_fail_nomem, report);
        return true;
    }
    if (!empty() && target != target_) return false;
    target_ = target;
    ask_and_add(move, report);
    return true;
}

// Asks where the pages are (187 ns a page) and keeps those on the lower tier: a page that is on the target already
// would end the kernel's batch, and somebody else may have moved pages since they were sampled.
void PageMover::ask_and_add(const Move& move, Report report) {
    const bool huge = move.rule == MoveRule::kHuge;
    const uint32_t folios = huge ? 1 : move.pages;
    const uint16_t base_pages = huge ? static_cast<uint16_t>(move.pages) : uint16_t{1};
    for (uint32_t i = 0; i < folios; ++i) {
        // An address to be handed to the kernel, never dereferenced.
        pages_[i] = reinterpret_cast<void*>(move.address + uint64_t{i} * kPageBytes);
        statuses_[i] = kNotWritten;
    }
    counters_.add(Counter::query_calls);
    world_.move_pages({pages_.data(), folios}, nullptr, statuses_.data());
    OutcomeRun run(report, world_.now(), target_);
    for (uint32_t i = 0; i < folios; ++i) {
        const uintptr_t address = move.address + uint64_t{i} * kPageBytes;
        const NodeId node{static_cast<int16_t>(statuses_[i])};
        if (statuses_[i] >= 0 && topology_.is_lower(node)) {
            entries_[count_++] =
                Entry{address, move.heap_generation, base_pages, node.value, PageOutcome::kNotTried, true};
            base_pages_ += base_pages;
        } else if (statuses_[i] >= 0) {
            counters_.add(Counter::pages_at_target, base_pages);
            run.add(address, base_pages, PageOutcome::kAtTarget, node);
        } else {
            counters_.add(Counter::pages_absent, base_pages);
            run.add(address, base_pages, PageOutcome::kAbsent, kNoNode);
        }
    }
}

void PageMover::fail(Entry& entry, PageOutcome outcome, Counter part) {
    entry.pending = false;
    entry.outcome = outcome;
    counters_.add(Counter::pgpromote_fail, entry.base_pages);
    counters_.add(part, entry.base_pages);
}

// The wait for the budget may have been long. A move that races with munmap is harmless; one that would pull new memory
// at an old address is only useless.
void PageMover::drop_stale() {
    for (Entry& entry : std::span(entries_).first(count_)) {
        if (world_.generation_of(entry.address) == entry.generation) continue;
        entry.pending = false;
        entry.outcome = PageOutcome::kAbsent;    // its heat is another memory's
        counters_.add(Counter::pages_stale, entry.base_pages);
    }
}

uint32_t PageMover::gather_pending() {
    uint32_t arguments = 0;
    for (uint32_t i = 0; i < count_; ++i) {
        if (!entries_[i].pending) continue;
        index_[arguments] = i;
        pages_[arguments] = reinterpret_cast<void*>(entries_[i].address);
        nodes_[arguments] = target_.value;
        statuses_[arguments] = kNotWritten;
        ++arguments;
    }
    return arguments;
}

long PageMover::move_pending(uint32_t arguments) {
    const TimeNs before = world_.now();
    const long result = world_.move_pages({pages_.data(), arguments}, nodes_.data(), statuses_.data());
    counters_.add(Counter::move_calls);
    counters_.add(Counter::move_ns, static_cast<uint64_t>(world_.now() - before));
    // Anything but 0: the kernel stopped and wrote no status for its last batch, whose other pages may well have moved.
    if (result != 0) ask_again(arguments);
    for (uint32_t i = 0; i < arguments; ++i) settle(entries_[index_[i]], statuses_[i]);
    return result;
}

void PageMover::ask_again(uint32_t arguments) {
    for (uint32_t i = 0; i < arguments; ++i) statuses_[i] = kNotWritten;
    counters_.add(Counter::query_calls);
    world_.move_pages({pages_.data(), arguments}, nullptr, statuses_.data());
}

void PageMover::settle(Entry& entry, int status) {
    if (status >= 0) {
        entry.node = static_cast<int16_t>(status);
        if (topology_.is_lower(NodeId{entry.node})) return;    // still pending
        entry.pending = false;
        entry.outcome = PageOutcome::kPromoted;
        counters_.add(Counter::pgpromote_success, entry.base_pages);
        counters_.add(Counter::promoted_bytes, uint64_t{entry.base_pages} * kPageBytes);
        return;
    }
    switch (status) {
        case kNotWritten:
            return;    // still pending
        case -ENOENT:
        case -EFAULT:
            return fail(entry, PageOutcome::kAbsent, Counter::pgpromote_fail_fault);
        case -EACCES:    // shared with a forked child, as a rule not for long
            return fail(entry, PageOutcome::kBusy, Counter::pgpromote_fail_access);
        case -EBUSY:
            return fail(entry, PageOutcome::kBusy, Counter::pgpromote_fail_busy);
        case -ENOMEM:
            return fail(entry, PageOutcome::kNoMemory, Counter::pgpromote_fail_nomem);
        default:
            return fail(entry, PageOutcome::kRefused, Counter::pgpromote_fail_other);
    }
}

void PageMover::give_up_pending(long result) {
    for (Entry& entry : std::span(entries_).first(count_)) {
        if (!entry.pending) continue;
        switch (result) {
            case -ENOMEM:
                fail(entry, PageOutcome::kNoMemory, Counter::pgpromote_fail_nomem);
                break;
            case -EACCES:
            case -EPERM:
                fail(entry, PageOutcome::kRefused, Counter::pgpromote_fail_access);
                break;
            default:
                if (result < 0)
                    fail(entry, PageOutcome::kRefused, Counter::pgpromote_fail_other);
                else
                    fail(entry, PageOutcome::kBusy, Counter::pgpromote_fail_busy);
        }
    }
}

void PageMover::execute(Report report) {
    drop_stale();
    long result = 0;
    // A pinned page stops the kernel's batch: the pages it held up get one more call, the pinned one a cool-down.
    for (int attempt = 0; attempt < 2 && result >= 0; ++attempt) {
        const uint32_t arguments = gather_pending();
        if (arguments == 0) break;
        result = move_pending(arguments);
    }
    give_up_pending(result);
    report_all(report);
}

void PageMover::drop(Report report) {
    counters_.add(Counter::pages_expired, base_pages_);
    report_all(report);
}

void PageMover::report_all(Report report) {
    OutcomeRun run(report, world_.now(), target_);
    for (const Entry& entry : std::span(entries_).first(count_))
        run.add(entry.address, entry.base_pages, entry.outcome, NodeId{entry.node});
    count_ = base_pages_ = 0;
}

}    // namespace pghot
