// SPDX-License-Identifier: Apache-2.0
#include "runtime/migrate/page_mover.h"

#include <cerrno>

namespace pghot {
namespace {

// A status that the kernel never writes: after a call that stopped half-way it writes none for the last batch.
constexpr int kNotWritten = -4096;

// What an error of the kernel means for a page that it was asked to move. Errors are told apart for promotions only.
struct Fate {
    PageOutcome outcome;
    Counter counter;
};

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

// Of one page's status.
Fate fate_of_page(long error) {
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

// Of a whole call: a refusal of the call stands for good.
Fate fate_of_call(long error) {
    if (error == -ENOMEM) return {PageOutcome::kNoMemory, Counter::pgpromote_fail_nomem};
    if (error == -EACCES || error == -EPERM) return {PageOutcome::kRefused, Counter::pgpromote_fail_access};
    return {PageOutcome::kRefused, Counter::pgpromote_fail_other};
}

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
    target_ = target;
    kind_ = move.kind;
    ask_and_add(move, report);
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
                                      node.value, PageOutcome::kNotTried, true,       0};
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

// The wait for the budget may have been long, and a plan goes over several mappings: add() saw the first page's policy
// only. A move that races with munmap is harmless; one that would pull new memory at an old address is only useless.
// Memory that the program bound must stay, which costs one get_mempolicy a page (0.24 us, a move takes 1-3 us).
void PageMover::drop_stale() {
    for (Entry& entry : std::span(entries_).first(count_)) {
        const bool same_memory = world_.generation_of(entry.address) == entry.generation;
        const bool allowed = (world_.targets_of(entry.address, kind_) >> target_.value & 1) != 0;
        if (same_memory && allowed) continue;
        entry.pending = false;
        // Of other memory than the one that was sampled the heat says nothing.
        entry.outcome = same_memory ? forbidden(kind_) : PageOutcome::kAbsent;
        counters_.add(Counter::pages_stale, entry.base_pages);
    }
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
    counters_.add(Counter::move_calls);
    counters_.add(Counter::move_ns, static_cast<uint64_t>(world_.now() - before));
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

void PageMover::give_up_pending(long result) {
    const Fate fate = result < 0 ? fate_of_call(result) : fate_of_page(-EBUSY);
    for (Entry& entry : std::span(entries_).first(count_))
        if (entry.pending) fail(entry, fate.outcome, fate.counter);
}

// A huge page may have been split since it was sampled; then only its first base page went, and the last one is still
// where it was. A last page that is gone says nothing: the program unmapped it, most likely after the move.
void PageMover::confirm_huge_pages() {
    uint32_t arguments = 0;
    for (uint32_t i = 0; i < count_; ++i) {
        if (entries_[i].base_pages == 1 || entries_[i].outcome != words_for(kind_).moved) continue;
        index_[arguments] = i;
        pages_[arguments++] = kernel_address(last_page_of(entries_[i].address, entries_[i].base_pages));
    }
    if (arguments == 0) return;
    ask(arguments);
    for (uint32_t i = 0; i < arguments; ++i) {
        Entry& entry = entries_[index_[i]];
        if (statuses_[i] >= 0 && statuses_[i] != entry.node) {
            entry.split_off = static_cast<uint16_t>(entry.base_pages - 1);
            entry.base_pages = 1;
            counters_.add(Counter::pages_stale, entry.split_off);
        }
        count_moved(entry);
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
        if (result == 0) ask_about_pending();
    }
    give_up_pending(result);
    confirm_huge_pages();
    report_all(report);
}

void PageMover::drop(Report report) {
    counters_.add(Counter::pages_expired, base_pages_);
    report_all(report);
}

void PageMover::report_all(Report report) {
    OutcomeRun run(report, world_.now(), kind_, target_);
    for (const Entry& entry : std::span(entries_).first(count_)) {
        run.add(entry.address, entry.base_pages, entry.outcome, NodeId{entry.node});
        if (entry.split_off > 0) run.add(entry.address + kPageBytes, entry.split_off, PageOutcome::kAbsent, kNoNode);
    }
    count_ = base_pages_ = 0;
}

}    // namespace pghot
