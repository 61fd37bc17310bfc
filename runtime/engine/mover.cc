// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/mover.h"

#include <algorithm>

#include "runtime/base/heap.h"
#include "runtime/engine/movable_memory.h"
#include "runtime/policy/capacity.h"

namespace pghot {
namespace {

// Most pages of a call under a budget: what it lets pass in 100 ms, the mover's default sleep, so that a small one is
// not spent in bursts; a chunk at least.
uint32_t most_pages(uint32_t rate_limit_mbps) {
    const uint64_t pages = uint64_t{rate_limit_mbps} * kMiB / 10 / kPageBytes;
    return static_cast<uint32_t>(std::clamp<uint64_t>(pages, kPagesPerChunk, kMaxBatchPages));
}

}    // namespace

long KernelMoveWorld::move_pages(std::span<void* const> pages, const int* targets, int* statuses) {
    return sys::move_pages(pages, targets, statuses);
}

uint64_t KernelMoveWorld::targets_of(uintptr_t address, MoveKind kind) {
    return targets_at(address, kind, shared_.settings.tunables.scope, shared_.thread_policy, shared_.topology);
}

uint32_t KernelMoveWorld::generation_of(uintptr_t address) {
    return heap_lookup == nullptr ? 0 : heap_lookup(address).generation;
}

uint64_t KernelMoveWorld::room_on(NodeId node) {
    const uint32_t round = shared_.free_round.load(std::memory_order_acquire);    // pairs with the sampler's release
    if (round != round_) taken_.fill(0);
    round_ = round;
    const auto index = static_cast<unsigned>(node.value);
    const uint64_t free = shared_.free_bytes[index].load(std::memory_order_relaxed);
    // The policy keeps the headroom, of which pages that change places may use a part.
    const uint64_t floor = floor_bytes(shared_.topology[node], shared_.low_watermark_bytes[index]);
    const int64_t room = static_cast<int64_t>(free) - taken_[index] - static_cast<int64_t>(floor);
    return room > 0 ? static_cast<uint64_t>(room) : 0;
}

void KernelMoveWorld::moved(NodeId from, NodeId to, uint64_t bytes) {
    taken_[static_cast<unsigned>(from.value)] -= static_cast<int64_t>(bytes);
    taken_[static_cast<unsigned>(to.value)] += static_cast<int64_t>(bytes);
}

MoverLoop::MoverLoop(EngineShared& shared)
    : shared_(shared),
      counters_(shared.statistics->counters),
      world_(shared),
      batch_(shared.topology, world_, counters_),
      call_size_(
          std::min(shared.settings.tunables.migrate_batch, most_pages(shared.settings.tunables.rate_limit_mbps))),
      budget_(shared.job, shared.job_slot, shared.settings.tunables.rate_limit_mbps,
              uint64_t{call_size_.pages()} * kPageBytes) {}

void MoverLoop::run() {
    const uint64_t sleep_ns = uint64_t{shared_.settings.tunables.migrate_sleep_ms} * kNsPerMs;
    while (!shared_.stopping()) {
        const uint32_t seen = shared_.plans_waiting.value();
        Move move;
        while (!shared_.stopping() && shared_.plans.pop(move)) take(move);
        if (!batch_.empty()) run_batch();
        counters_.set(Counter::mover_cpu_ns, sys::thread_cpu_ns());
        if (shared_.plans.size() == 0) shared_.plans_waiting.wait(seen, sleep_ns);
    }
    drop_queue();
    counters_.set(Counter::mover_cpu_ns, sys::thread_cpu_ns());
}

// In parts, where a call holds less than the move.
void MoverLoop::take(Move move) {
    const auto send = [this](const MoveOutcome& outcome) { report(outcome); };
    while (move.pages > 0) {
        Move part = move;
        if (move.rule != MoveRule::kHuge) part.pages = std::min(move.pages, room_in_batch());
        if (!batch_.add(part, send)) {
            run_batch();
            continue;
        }
        move.address += uint64_t{part.pages} * kPageBytes;
        move.pages -= part.pages;
        if (room_in_batch() == 0) run_batch();
    }
}

// Pages that may still go into the call that is being prepared.
uint32_t MoverLoop::room_in_batch() const {
    const uint32_t folios = shared_.settings.tunables.migrate_batch;
    const uint32_t pages = call_size_.pages();
    if (batch_.folios() >= folios || batch_.pages() >= pages) return 0;
    return std::min(folios - batch_.folios(), pages - batch_.pages());
}

void MoverLoop::run_batch() {
    const auto send = [this](const MoveOutcome& outcome) { report(outcome); };
    if (batch_.pages() > 0 && !wait_for_budget(batch_.bytes())) return batch_.drop(send);
    batch_.execute(send);
    call_size_.note(batch_.last_call().pages, batch_.last_call().ns);
}

// False when the engine stopped meanwhile.
bool MoverLoop::wait_for_budget(uint64_t bytes) {
    const TimeNs start = sys::now();
    TimeNs now = start;
    bool waited = false;
    while (!shared_.stopping()) {
        const BudgetAnswer answer = budget_.take(bytes, now);
        if (answer.granted) {
            counters_.add(Counter::budget_waits, waited);
            counters_.add(Counter::budget_wait_ns, static_cast<uint64_t>(now - start));
            return true;
        }
        waited = true;
        shared_.stop.wait(0, static_cast<uint64_t>(answer.retry_at - now));
        now = sys::now();
    }
    budget_.give_up();
    return false;
}

void MoverLoop::report(const MoveOutcome& outcome) {
    // The sampler empties the queue at every drain; while it does not, moving on would only hide outcomes from it.
    while (!shared_.outcomes.push(outcome)) {
        if (shared_.stopping()) return;    // counted already; nobody plans any more
        shared_.stop.wait(0, kNsPerMs);
    }
}

void MoverLoop::drop_queue() {
    const auto ignore = [](const MoveOutcome&) {};
    batch_.drop(ignore);
    Move move;
    while (shared_.plans.pop(move)) counters_.add(Counter::pages_expired, move.pages);
}

}    // namespace pghot
