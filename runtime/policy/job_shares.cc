// SPDX-License-Identifier: Apache-2.0
#include "runtime/policy/job_shares.h"

#include <algorithm>

namespace pghot {
namespace {

constexpr uint64_t kSavedTurns = 2;    // in batches
// In batches, or the time if that is longer. Who counts on ranks before it that died sleeps too long.
constexpr uint64_t kLongestSleep = 4;
constexpr uint64_t kLongestSleepNs = 10 * kNsPerMs;
constexpr uint64_t kLateNs = 50 * kNsPerMs;    // a busy node wakes a thread that late now and then

void raise(std::atomic<uint64_t>& word, uint64_t value) {
    uint64_t seen = word.load(kJobOrder);
    while (seen < value && !word.compare_exchange_weak(seen, value, kJobOrder)) {
    }
}

}    // namespace

FairBudget::FairBudget(JobBoard* board, size_t slot, uint32_t rate_mbps, uint64_t batch_bytes)
    : board_(board), slot_(slot), budget_(board != nullptr ? board->free_at : own_word_, rate_mbps, batch_bytes) {}

// A rank that was away, or is behind for another reason, comes back at most two batches before the others.
uint64_t FairBudget::turn_of(const JobSlot& slot) const {
    const uint64_t latest = board_->turn_ns.load(kJobOrder);
    return std::max(slot.turn_ns.load(kJobOrder), latest - std::min(latest, kSavedTurns * budget_.credit_ns()));
}

// What those cost that wait and whose turn comes before `turn`; 0: it is the next.
uint64_t FairBudget::ns_before(uint64_t turn, TimeNs now) const {
    const auto slots = used_slots(*board_);
    uint64_t sum = 0;
    for (size_t i = 0; i < slots.size(); ++i) {
        const uint64_t back_by = slots[i].back_by_ns.load(kJobOrder);
        if (i == slot_ || back_by == 0 || now.ns > back_by + kLateNs) continue;
        const uint64_t other = turn_of(slots[i]);
        if (other < turn || (other == turn && i < slot_))
            sum += std::max<uint64_t>(slots[i].asks_ns.load(kJobOrder), 1);
    }
    return sum;
}

BudgetAnswer FairBudget::take(uint64_t bytes, TimeNs now) {
    if (board_ == nullptr) return budget_.take(bytes, now);
    JobSlot& own = board_->slots[slot_];
    const uint64_t cost = budget_.cost_ns(bytes);
    const uint64_t turn = turn_of(own);
    const uint64_t before = ns_before(turn, now);
    const uint64_t free_at = board_->free_at.load(kJobOrder);
    const uint64_t grace = budget_.credit_ns();
    const bool is_unclaimed = now.ns >= free_at + grace;
    if (before > 0 && !is_unclaimed) return wait(turn, cost, TimeNs{free_at + std::max(before, grace)}, now);
    const BudgetAnswer answer = budget_.take(bytes, now);
    if (!answer.granted) return wait(turn, cost, answer.retry_at, now);
    own.back_by_ns.store(0, kJobOrder);
    own.turn_ns.store(turn + cost, kJobOrder);
    own.granted_bytes.store(own.granted_bytes.load(kJobOrder) + bytes, kJobOrder);
    raise(board_->turn_ns, turn);
    return answer;
}

BudgetAnswer FairBudget::wait(uint64_t turn, uint64_t cost_ns, TimeNs until, TimeNs now) {
    const uint64_t free_at = board_->free_at.load(kJobOrder);
    const uint64_t longest = std::max(kLongestSleep * budget_.credit_ns(), kLongestSleepNs);
    const uint64_t latest = std::max(free_at, now.ns) + longest;
    const TimeNs retry_at{std::clamp(until.ns, now.ns + 1, latest)};
    JobSlot& own = board_->slots[slot_];
    own.turn_ns.store(turn, kJobOrder);
    own.asks_ns.store(cost_ns, kJobOrder);
    own.back_by_ns.store(retry_at.ns, kJobOrder);
    return {.granted = false, .retry_at = retry_at};
}

void FairBudget::give_up() {
    if (board_ != nullptr) board_->slots[slot_].back_by_ns.store(0, kJobOrder);
}

// Water is poured into cups of the size of each rank's use: those that are full leave the rest to the others.
uint64_t sampler_share_ns(const JobBoard& board, size_t own, uint64_t limit_ns, TimeNs now) {
    const auto slots = used_slots(board);
    uint64_t share = 0;
    for (;;) {
        uint64_t rest = limit_ns;
        uint64_t ranks = 1;
        for (size_t i = 0; i < slots.size(); ++i) {
            if (i == own || !shows_life(slots[i], now)) continue;
            const uint64_t uses = slots[i].sampler_ns.load(kJobOrder);
            if (uses < share)
                rest -= std::min(rest, uses);
            else
                ++ranks;
        }
        if (rest / ranks <= share) return share;
        share = rest / ranks;
    }
}

unsigned ranks_alive(const JobBoard& board, TimeNs now) {
    const auto slots = used_slots(board);
    return static_cast<unsigned>(
        std::count_if(slots.begin(), slots.end(), [&](const JobSlot& slot) { return shows_life(slot, now); }));
}

}    // namespace pghot
