// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/units.h"
#include "runtime/policy/token_budget.h"

// What the processes of one job on one node ("ranks") have in common: a board in shared memory, a slot for each. Words
// only, no lock and no count to repair: a rank that dies, whenever it is, leaves words that time makes right.
namespace pghot {

inline constexpr size_t kJobSlots = 1024;                             // more ranks than CPUs of any node we know
inline constexpr uint64_t kJobBoardFormat = 0x0162'6a74'6f68'6770;    // "pghotjb" and version 1, little-endian

// One rank. Written by its owner alone, except that `owner` is cleared for it when it died.
struct alignas(64) JobSlot {
    std::atomic<uint64_t> owner{0};            // job_owner(), 0: free
    std::atomic<uint64_t> turn_ns{0};          // its place in the order of turns: ns of budget that it was granted
    std::atomic<uint64_t> asks_ns{0};          // cost of what it waits for
    std::atomic<uint64_t> back_by_ns{0};       // it waits, and will ask again by this time; 0: it does not wait
    std::atomic<uint64_t> alive_ns{0};         // sign of life of its sampler, about once a second
    std::atomic<uint64_t> sampler_ns{0};       // CPU time of its sampler in the last second
    std::atomic<uint64_t> granted_bytes{0};    // in all
    uint64_t unused = 0;
};
static_assert(sizeof(JobSlot) == 64);

// All zero is a board that nobody has joined: fresh shared memory needs no set-up but the format.
struct JobBoard {
    std::atomic<uint64_t> format{0};
    std::atomic<uint64_t> pid_namespace{0};    // in which the owners' numbers mean something
    std::atomic<uint64_t> free_at{0};          // TokenBudget's word
    std::atomic<uint64_t> turn_ns{0};          // the latest turn that was granted
    std::atomic<uint32_t> slots_used{0};       // slots [0, slots_used) may have an owner
    std::atomic<uint32_t> ranks_seen{0};       // that ever joined
    std::array<JobSlot, kJobSlots> slots{};
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// All words are relaxed: each is a fact of its own and publishes nothing.
inline constexpr auto kJobOrder = std::memory_order_relaxed;

// The slots that may have an owner, of a board or a const board.
template <typename Board>
auto used_slots(Board& board) {
    return std::span(board.slots).first(std::min<size_t>(board.slots_used.load(kJobOrder), kJobSlots));
}

// Whether the slot's sampler gave a sign of life in the last 5 s. A rank that died has them for that long, too.
inline bool shows_life(const JobSlot& slot, TimeNs now) {
    constexpr uint64_t kSilentNs = 5 * kNsPerSecond;
    return slot.owner.load(kJobOrder) != 0 && slot.alive_ns.load(kJobOrder) + kSilentNs > now.ns;
}

// A process as its slot names it: the number alone comes again. `start_ticks` is field 22 of /proc/PID/stat.
constexpr uint64_t job_owner(int32_t pid, uint64_t start_ticks) {
    return uint64_t{static_cast<uint32_t>(pid)} << 32 | (start_ticks & 0xffffffff);
}
constexpr int32_t pid_of_owner(uint64_t owner) { return static_cast<int32_t>(owner >> 32); }

// The rate limit of a job, shared fairly. What TokenBudget promises holds for all ranks together; beyond it
//   - ranks that wait have turns in the order of what they were granted (start-time fair queueing): n ranks that want
//     more than there is get 1/n each, whatever the size of their requests
//   - who does not ask does not wait: its share is the others' at once. It saves up no more than two batches of turns
//   - free budget whose turn nobody takes for the time of a batch is anybody's. TokenBudget gives that much lateness
//     back, so a rank that is late, stopped or dead costs the others nothing
//   - a rank that was to ask again and did not for 50 ms is passed over altogether
//
// One owner thread (pghot-mover). Without a board the process is alone and its budget its own. A request costs a look
// at every used slot, 64 bytes each: about 1 us at 128 ranks.
class FairBudget {
public:
    // `board` (null: alone) outlives the budget; `slot` is the caller's. Rate and batch as for TokenBudget; each rank
    // pays by its own rate.
    FairBudget(JobBoard* board, size_t slot, uint32_t rate_mbps, uint64_t batch_bytes);
    FairBudget(const FairBudget&) = delete;
    FairBudget& operator=(const FairBudget&) = delete;

    // When refused, ask again at retry_at: the time of the turn, or earlier, to see whether who comes before still
    // lives.
    BudgetAnswer take(uint64_t bytes, TimeNs now);
    // The request is not wanted any more.
    void give_up();

private:
    uint64_t turn_of(const JobSlot& slot) const;
    uint64_t ns_before(uint64_t turn, TimeNs now) const;
    BudgetAnswer wait(uint64_t turn, uint64_t cost_ns, TimeNs until, TimeNs now);

    JobBoard* board_;
    size_t slot_;
    std::atomic<uint64_t> own_word_{0};
    TokenBudget budget_;
};

// The sampler's CPU limit of a job, in ns a second, shared: what this rank may use when the others use what they use
// now and nobody need have less than the same (max-min fairness). Ranks that show no life are not counted.
uint64_t sampler_share_ns(const JobBoard& board, size_t own, uint64_t limit_ns, TimeNs now);

// Ranks that show life, the caller's among them.
unsigned ranks_alive(const JobBoard& board, TimeNs now);

}    // namespace pghot
