// SPDX-License-Identifier: Apache-2.0
#include "runtime/migrate/page_mover.h"

#include <algorithm>
#include <cerrno>

namespace pghot {
namespace {

// A status that the kernel never writes: after a call that stopped half-way it writes none for the last batch.
constexpr int kNotWritten = -4096;

// What is counted for a kind of move.
struct KindOfMove {
    PageOutcome moved;
    Counter success;
    Counter bytes;
    Counter fail;
};
constexpr KindOfMove kKinds[kMoveKinds] = {
    {PageOutcome::kPromoted, Counter::pgpromote_success, Counter::promoted_bytes, Counter::pgpromote_fail},
    {PageOutcome::kDemoted, Counter::pgdemote_success, Counter::demoted_bytes, Counter::pgdemote_fail},
    {PageOutcome::kRehomed, Counter::numa_pages_migrated, Counter::rehomed_bytes, Counter::numa_pages_fail},
};
const KindOfMove& words_for(MoveKind kind) { return kKinds[static_cast<size_t>(kind)]; }

// Of memory whose policy, the program's word, keeps it from moving. A page below the policy that was sampled is another
// mapping's by then, or its heat cannot be used; one that shall stay in DRAM is best not asked about again.
PageOutcome forbidden(MoveKind kind) {
    return kind == MoveKind::kDemote ? PageOutcome::kRefused : PageOutcome::kAbsent;
}

uintptr_t last_page_of(uintptr_t address, uint32_t base_pages) {
    return address + uint64_t{base_pages - 1} * kPageBytes;
}

// Addresses to be handed to the kernel, never dereferenced.
void* kernel_address(uintptr_t address) { return reinterpret_cast<void*>(address); }

// Merges neighbouring pages with the same fate into one outcome.
class OutcomeRun {
public:
    OutcomeRun(PageMover::Report report, TimeNs now, MoveKind kind, NodeId target)
        : report_(report), now_(now), kind_(kind), target_(target) {}
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
        run_ = MoveOutcome{address, pages, outcome, node, now_, target_, kind_};
    }

private:
    void flush() {
        if (run_.pages > 0) report_(run_);
        run_.pages = 0;
    }
    PageMover::Report report_;
    TimeNs now_;
    MoveKind kind_;
    NodeId target_;
    MoveOutcome run_{};
};

}    // namespace

// Of one page's status.
PageMover::Fate PageMover::fate_of_page(long error) {
    switch (error) {
        case -ENOENT:
        case -EFAULT:
            return {PageOutcome::kAbsent, Counter::pgpromote_fail_fault};
        case -EACCES:    // shared with a forked child, as a rule not for long
            return {PageOutcome::kBusy, Counter::pgpromote_fail_access};
        case -EBUSY:
            return {PageOutcome::kBusy, Counter::pgpromote_fail_busy};
        case -ENOMEM:
            return {PageOutcome::kNoMemory, Counter::pgpromote_fail_nomem};
        default:
            return {PageOutcome::kRefused, Counter::pgpromote_fail_other};
    }
}

// Of a whole call. A count of pages left behind stands for EBUSY; a refusal of the call stands for good.
PageMover::Fate PageMover::fate_of_call(long result) {
    if (result >= 0) return fate_of_page(-EBUSY);
    if (result == -ENOMEM) return {PageOutcome::kNoMemory, Counter::pgpromote_fail_nomem};
    if (result == -EACCES || result == -EPERM) return {PageOutcome::kRefused, Counter::pgpromote_fail_access};
    return {PageOutcome::kRefused, Counter::pgpromote_fail_other};
}

// The node that distances to possible targets are taken from. Rows of nodes without CPUs say nothing.
NodeId PageMover::origin_of(const Move& move) const {
    if (move.kind != MoveKind::kDemote) return move.target;
    if (topology_.valid(move.from)) return move.from;
    for (int16_t n = 0; n < topology_.node_count; ++n)
        if (topology_[NodeId{n}].has_cpus) return NodeId{n};
    return NodeId{0};
}

bool PageMover::is_target(MoveKind kind, NodeId node) const {
    return kind == MoveKind::kDemote ? topology_.takes_demotions(node) : topology_.is_top(node);
}

// The planned node, or the nearest other one of its tier that still has room, what waits in the batch included. No
// node: kNoNode.
NodeId PageMover::choose_target(const Move& move, uint64_t allowed) {
    const auto& distances = topology_.distance[static_cast<unsigned>(origin_of(move).value)];
    NodeId best = kNoNode;
    unsigned best_distance = ~0U;
    for (int16_t n = 0; n < topology_.node_count; ++n) {
        const NodeId node{n};
        if ((allowed >> n & 1) == 0 || !is_target(move.kind, node)) continue;
        if (move.kind == MoveKind::kRehome && node != move.target) continue;
        const unsigned distance = node == move.target ? 0 : distances[static_cast<unsigned>(n)];
        const uint64_t wanted = uint64_t{move.pages} * kPageBytes + (node == target_ ? bytes() : 0);
        if (distance >= best_distance || world_.room_on(node) < wanted) continue;
        best = node;
        best_distance = distance;
    }
    return best;
}

PageMover::Place PageMover::place_of(NodeId from, NodeId node) const {
    const bool lower = topology_.is_lower(node);
    switch (kind_) {
        case MoveKind::kDemote:
            if (lower) return Place::kTarget;
            return !from.valid() || node == from ? Place::kSource : Place::kElsewhere;
        case MoveKind::kRehome:
            if (node == target_) return Place::kTarget;
            return lower ? Place::kElsewhere : Place::kSource;
        case MoveKind::kPromote:
            break;
    }
    return lower ? Place::kSource : Place::kTarget;
}

// All of a move at once. `counter`: pages_stale, or the part of pgpromote_fail.
void PageMover::refuse(const Move& move, PageOutcome outcome, Counter counter, Report report) {
    const bool failed = counter != Counter::pages_stale;
    if (failed) counters_.add(words_for(move.kind).fail, move.pages);
    if (!failed || move.kind == MoveKind::kPromote) counters_.add(counter, move.pages);
    report(outcome_of(move, outcome, world_.now()));
}

bool PageMover::add(const Move& move, Report report) {
    const uint32_t folios = move.rule == MoveRule::kHuge ? 1 : move.pages;
    if (!empty() && (count_ + folios > kMaxBatchPages || base_pages_ + move.pages > kMaxBatchPages)) return false;
    const bool names_its_end = topology_.valid(move.target) || move.kind == MoveKind::kDemote;
    if (!names_its_end || world_.generation_of(move.address) != move.heap_generation) {
        refuse(move, PageOutcome::kAbsent, Counter::pages_stale, report);
        return true;
    }
    const uint64_t allowed = world_.targets_of(move.address, move.kind);
    if (allowed == 0) {
        refuse(move, forbidden(move.kind), Counter::pages_stale, report);
        return true;
    }
    const NodeId target = choose_target(move, allowed);
    if (!target.valid()) {
        refuse(move, PageOutcome::kNoMemory, Counter::pgpromote_fail_nomem, report);
        return true;
    }
    if (!empty() && (target != target_ || move.kind != kind_)) return false;
    if (empty()) checked_ = world_.now();
    target_ = target;
    kind_ = move.kind;
    const uint32_t first = count_;
    ask_and_add(move, report);
    drop_forbidden(first);
    return true;
}

// Asks where the pages are (187 ns a page) and keeps those that are to be moved: a page that is on the target already
// would end the kernel's batch, and somebody else may have moved pages since they were sampled. Of a huge page the
// first and the last base page.
void PageMover::ask_and_add(const Move& move, Report report) {
    const bool huge = move.rule == MoveRule::kHuge;
    const uint32_t folios = huge ? 1 : move.pages;
    for (uint32_t i = 0; i < folios; ++i) pages_[i] = kernel_address(move.address + uint64_t{i} * kPageBytes);
    if (huge) pages_[1] = kernel_address(last_page_of(move.address, move.pages));
    const long refused = ask(huge ? 2 : folios);
    if (refused < 0) {
        const Fate fate = fate_of_call(refused);
        return refuse(move, fate.outcome, fate.counter, report);
    }
    // Its ends on different nodes: split, purged in part or mapped anew since it was sampled as one huge page.
    if (huge && statuses_[0] != statuses_[1]) return refuse(move, PageOutcome::kAbsent, Counter::pages_stale, report);
    add_known(move, folios, report);
}

// statuses_ says where the folios of `move` are.
void PageMover::add_known(const Move& move, uint32_t folios, Report report) {
    const auto base_pages = static_cast<uint16_t>(move.rule == MoveRule::kHuge ? move.pages : 1);
    OutcomeRun run(report, world_.now(), kind_, target_);
    for (uint32_t i = 0; i < folios; ++i) {
        const uintptr_t address = move.address + uint64_t{i} * kPageBytes;
        if (statuses_[i] < 0) {
            counters_.add(Counter::pages_absent, base_pages);
            run.add(address, base_pages, PageOutcome::kAbsent, kNoNode);
            continue;
        }
        const NodeId node{static_cast<int16_t>(statuses_[i])};
        switch (place_of(move.from, node)) {
            case Place::kSource:
                entries_[count_++] = {address,    move.heap_generation,   base_pages, node.value,
                                      node.value, PageOutcome::kNotTried, true,       false};
                base_pages_ += base_pages;
                break;
            case Place::kTarget:
                counters_.add(Counter::pages_at_target, base_pages);
                run.add(address, base_pages, PageOutcome::kAtTarget, node);
                break;
            case Place::kElsewhere:
                counters_.add(Counter::pages_elsewhere, base_pages);
                run.add(address, base_pages, PageOutcome::kElsewhere, node);
                break;
        }
    }
}

// Asks where the first `arguments` of pages_ are, into statuses_. 0 or -errno.
long PageMover::ask(uint32_t arguments) {
    for (uint32_t i = 0; i < arguments; ++i) statuses_[i] = kNotWritten;
    counters_.add(Counter::query_calls);
    return world_.move_pages({pages_.data(), arguments}, nullptr, statuses_.data());
}

void PageMover::fail(Entry& entry, PageOutcome outcome, Counter part) {
    entry.pending = false;
    entry.outcome = outcome;
    counters_.add(words_for(kind_).fail, entry.base_pages);
    if (kind_ == MoveKind::kPromote) counters_.add(part, entry.base_pages);
}

void PageMover::drop_stale(Entry& entry, PageOutcome outcome) {
    entry.pending = false;
    entry.outcome = outcome;
    base_pages_ -= entry.base_pages;
    counters_.add(Counter::pages_stale, entry.base_pages);
}

// Memory that the program bound must stay.
bool PageMover::keep_if_allowed(Entry& entry) {
    const bool allowed = (world_.targets_of(entry.address, kind_) >> target_.value & 1) != 0;
    if (!allowed && entry.pending) drop_stale(entry, forbidden(kind_));
    return allowed;
}

// A plan goes over several mappings, each with a policy of its own.
void PageMover::drop_forbidden(uint32_t begin) {
    while (begin < count_) {
        uint32_t end = begin + 1;
        const auto next_of = [](const Entry& entry) { return entry.address + entry.base_pages * kPageBytes; };
        while (end < count_ && entries_[end].address == next_of(entries_[end - 1])) ++end;
        drop_forbidden_of_run(begin, end);
        begin = end;
    }
}

// Neighbours in memory. Asks for the first, the last and a few between; where two of them differ, for all between them.
void PageMover::drop_forbidden_of_run(uint32_t begin, uint32_t end) {
    bool before = keep_if_allowed(entries_[begin]);
    for (uint32_t at = begin; at + 1 < end;) {
        const uint32_t next = std::min(at + kPolicyStride, end - 1);
        const bool after = keep_if_allowed(entries_[next]);
        for (uint32_t i = at + 1; i < next; ++i) {
            if (before != after)
                keep_if_allowed(entries_[i]);
            else if (!after && entries_[i].pending)
                drop_stale(entries_[i], forbidden(kind_));
        }
        before = after;
        at = next;
    }
}

// After a long wait for the budget. A move that races with munmap is harmless; one that would pull new memory at an old
// address is only useless.
void PageMover::check_again() {
    for (Entry& entry : std::span(entries_).first(count_)) {
        const bool reused = world_.generation_of(entry.address) != entry.generation;
        if (reused && entry.pending) drop_stale(entry, PageOutcome::kAbsent);    // its heat is another memory's
    }
    drop_forbidden(0);
}

uint32_t PageMover::gather_pending() {
    uint32_t arguments = 0;
    for (uint32_t i = 0; i < count_; ++i) {
        if (!entries_[i].pending) continue;
        index_[arguments] = i;
        pages_[arguments] = kernel_address(entries_[i].address);
        nodes_[arguments] = target_.value;
        statuses_[arguments] = kNotWritten;
        ++arguments;
    }
    return arguments;
}

long PageMover::move_pending(uint32_t arguments) {
    const TimeNs before = world_.now();
    const long result = world_.move_pages({pages_.data(), arguments}, nodes_.data(), statuses_.data());
    const auto took = static_cast<uint64_t>(world_.now() - before);
    if (last_call_.pages == 0) last_call_ = {base_pages_, took};
    counters_.add(Counter::move_calls);
    counters_.add(Counter::move_ns, took);
    // Anything but 0: the kernel stopped and wrote no status for its last batch, whose other pages may well have moved.
    if (result != 0) ask(arguments);
    for (uint32_t i = 0; i < arguments; ++i) settle(entries_[index_[i]], statuses_[i]);
    return result;
}

// After a call that did not stop: what is still pending was EBUSY. That also stands for a page that went along with
// another page of its folio (a multi-size huge page, whose base pages are planned one by one).
void PageMover::ask_about_pending() {
    const uint32_t arguments = gather_pending();
    if (arguments == 0) return;
    ask(arguments);
    for (uint32_t i = 0; i < arguments; ++i) settle(entries_[index_[i]], statuses_[i]);
}

void PageMover::settle(Entry& entry, int status) {
    if (status == kNotWritten || status == -EBUSY) return;    // still pending
    if (status < 0) {
        const Fate fate = fate_of_page(status);
        return fail(entry, fate.outcome, fate.counter);
    }
    entry.node = static_cast<int16_t>(status);
    if (place_of(kNoNode, NodeId{entry.node}) != Place::kTarget) return;    // still pending
    entry.pending = false;
    entry.outcome = words_for(kind_).moved;
    if (entry.base_pages == 1) count_moved(entry);    // huge ones: confirm_huge_pages
}

void PageMover::count_moved(const Entry& entry) {
    const uint64_t bytes = uint64_t{entry.base_pages} * kPageBytes;
    counters_.add(words_for(kind_).success, entry.base_pages);
    counters_.add(words_for(kind_).bytes, bytes);
    world_.moved(NodeId{entry.from}, NodeId{entry.node}, bytes);
}

// A huge page may have been split: since it was sampled, and then only its first base page went, or by the kernel,
// which moves base pages where the target has no 2 MiB in one piece, and may have run out of room on the way. Then its
// ends are on different nodes. A last page that is gone says nothing: the program unmapped it, most likely after the
// move.
void PageMover::confirm_huge_pages() {
    uint32_t arguments = 0;
    for (uint32_t i = 0; i < count_; ++i) {
        const Entry& entry = entries_[i];
        if (entry.base_pages == 1 || (!entry.pending && entry.outcome != words_for(kind_).moved)) continue;
        index_[arguments] = i;
        pages_[arguments++] = kernel_address(last_page_of(entry.address, entry.base_pages));
    }
    if (arguments == 0) return;
    ask(arguments);
    for (uint32_t i = 0; i < arguments; ++i) {
        Entry& entry = entries_[index_[i]];
        entry.apart = statuses_[i] >= 0 && statuses_[i] != entry.node;
        if (!entry.apart && !entry.pending) count_moved(entry);
    }
}

void PageMover::give_up_pending(const Fate& fate) {
    for (Entry& entry : std::span(entries_).first(count_))
        if (entry.pending && !entry.apart) fail(entry, fate.outcome, fate.counter);
}

void PageMover::execute(Report report) {
    last_call_ = {};
    if (static_cast<uint64_t>(world_.now() - checked_) > kChecksLastNs) check_again();
    long result = 0;
    // A pinned page stops the kernel's batch: the pages it held up get one more call, the pinned one a cool-down.
    for (int attempt = 0; attempt < 2 && result >= 0; ++attempt) {
        const uint32_t arguments = gather_pending();
        if (arguments == 0) break;
        result = move_pending(arguments);
        if (result == 0) ask_about_pending();
    }
    const Fate fate = fate_of_call(result);
    confirm_huge_pages();
    give_up_pending(fate);
    report_all(fate, report);
}

void PageMover::drop(Report report) {
    counters_.add(Counter::pages_expired, base_pages_);
    report_all({}, report);
}

// Every base page of what was one huge page. One that did not go shares the fate of the call where it ran out of
// memory; else it was no part of what was moved, and its heat was the huge page's.
void PageMover::report_parts(const Entry& entry, const Fate& fate, Report report) {
    counters_.add(Counter::huge_pages_split);
    for (uint32_t i = 0; i < entry.base_pages; ++i)
        pages_[i] = kernel_address(entry.address + uint64_t{i} * kPageBytes);
    ask(entry.base_pages);
    OutcomeRun run(report, world_.now(), kind_, target_);
    for (uint32_t i = 0; i < entry.base_pages; ++i) {
        Entry part = entry;
        part.address += uint64_t{i} * kPageBytes;
        part.base_pages = 1;
        part.pending = true;
        settle(part, statuses_[i]);
        if (part.pending && fate.outcome == PageOutcome::kNoMemory) fail(part, fate.outcome, fate.counter);
        if (part.pending) {
            part.outcome = PageOutcome::kAbsent;
            counters_.add(Counter::pages_stale);
        }
        run.add(part.address, 1, part.outcome, NodeId{part.node});
    }
}

void PageMover::report_all(const Fate& fate, Report report) {
    OutcomeRun run(report, world_.now(), kind_, target_);
    for (const Entry& entry : std::span(entries_).first(count_)) {
        if (entry.apart)
            report_parts(entry, fate, report);
        else
            run.add(entry.address, entry.base_pages, entry.outcome, NodeId{entry.node});
    }
    count_ = base_pages_ = 0;
}

}    // namespace pghot
