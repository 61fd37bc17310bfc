// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace pghot {

// Every counter of the library, one row each: name as in reports, the thread that writes it, meaning. Names that the
// kernel's hot-page postings use keep that meaning. The identities that must hold are in runtime/report/identities.h.
#define PGHOT_COUNTERS(X)                                                                                     \
    X(hwhint_total_events, sampler, "IBS samples read from the rings, lost ones excluded")                    \
    X(hwhint_useful_events, sampler, "samples with an address in memory that may move")                       \
    X(hwhint_dropped_events, sampler, "samples of memory that may not move, or of a thread that is not ours") \
    X(hwhint_unusable_events, sampler, "samples without a usable user address")                               \
    X(hwhint_dram_accesses, sampler, "useful samples served by DRAM")                                         \
    X(hwhint_extmem_accesses, sampler, "useful samples served by extension memory (CXL)")                     \
    X(hwhint_cache_accesses, sampler, "useful samples served by a cache")                                     \
    X(hwhint_nolevel_accesses, sampler, "useful samples without a level (stores, or unknown)")                \
    X(pghot_recorded_accesses, sampler, "accesses recorded in the heat table")                                \
    X(pghot_recorded_hintfaults, sampler, "of these, from NUMA hint faults")                                  \
    X(pghot_recorded_hwhints, sampler, "of these, from IBS")                                                  \
    X(lost_samples, sampler, "samples that the kernel could not put into a full ring")                        \
    X(throttle_events, sampler, "times the kernel throttled an event")                                        \
    X(rings_opened, sampler, "perf rings opened, one a thread")                                               \
    X(rings_failed, sampler, "threads for which no ring could be opened")                                     \
    X(heat_evictions, sampler, "chunks evicted from the heat table to keep PGHOT_HEAT_MEM")                   \
    X(period_changes, sampler, "changes of the sampling period, to keep PGHOT_SAMPLER_CPU or at a plateau")   \
    X(interrupt_ns, sampler, "estimated cost of the samples' interrupts to the program's threads, 2 us each") \
    X(snapshots, sampler, "readings of /proc/self/maps")                                                      \
    X(plans_dropped, sampler, "planned pages dropped because the mover's queue was full")                     \
    X(pages_observed, sampler, "planned pages not moved because PGHOT_MODE is observe")                       \
    X(promotions_paid, sampler, "pages promoted whose chunk was then used enough to pay for the move")        \
    X(promotions_wasted, sampler, "pages promoted and before that demoted, or unmapped with their chunk")     \
    X(pages_ping_pong, sampler, "pages moved back: down before they had paid, or up again soon after")        \
    X(chunk_rule_right, sampler, "chunks moved whole whose pages were sampled all over afterwards")           \
    X(chunk_rule_wrong, sampler, "chunks moved whole of which few pages or none were sampled afterwards")     \
    X(sampler_cpu_ns, sampler, "CPU time of pghot-sampler")                                                   \
    X(pgpromote_candidate, sampler, "pages planned for promotion")                                            \
    X(pages_by_page_rule, sampler, "of these, single pages by the page rule")                                 \
    X(pages_by_chunk_rule, sampler, "of these, pages by the chunk rule")                                      \
    X(pages_by_huge_rule, sampler, "of these, pages of huge pages")                                           \
    X(pgdemote_candidate, sampler, "pages planned for demotion to the lower tier")                            \
    X(numa_pages_candidate, sampler, "pages planned to go from one top-tier node to another")                 \
    X(pages_at_target, mover, "planned pages that were on the target, or in its tier, already")               \
    X(pages_elsewhere, mover, "planned pages that were neither where they were taken from nor at the target") \
    X(pages_absent, mover, "planned pages that were not present")                                             \
    X(pages_stale, mover, "planned pages unmapped, reused or bound by the program before the move")           \
    X(pages_expired, mover, "planned pages dropped at exit or when the plan grew too old")                    \
    X(pgpromote_success, mover, "pages moved from the lower tier to a top-tier node")                         \
    X(pgdemote_success, mover, "pages moved to the lower tier")                                               \
    X(numa_pages_migrated, mover, "pages moved from one top-tier node to another")                            \
    X(pgdemote_fail, mover, "pages planned for demotion that the kernel did not move")                        \
    X(numa_pages_fail, mover, "pages planned for another top-tier node that the kernel did not move")         \
    X(pgpromote_fail, mover, "pages planned for promotion that the kernel did not move")                      \
    X(pgpromote_fail_busy, mover, "of these, EBUSY")                                                          \
    X(pgpromote_fail_nomem, mover, "of these, ENOMEM: no room on the target node")                            \
    X(pgpromote_fail_access, mover, "of these, EACCES: shared with another process, or outside the cpuset")   \
    X(pgpromote_fail_fault, mover, "of these, EFAULT or ENOENT met while moving")                             \
    X(pgpromote_fail_other, mover, "of these, any other error")                                               \
    X(huge_pages_split, mover, "huge pages that had to go as base pages and went in part")                    \
    X(promoted_bytes, mover, "bytes promoted")                                                                \
    X(demoted_bytes, mover, "bytes demoted")                                                                  \
    X(rehomed_bytes, mover, "bytes moved from one top-tier node to another")                                  \
    X(move_calls, mover, "move_pages calls that moved or tried to move")                                      \
    X(query_calls, mover, "move_pages calls that only asked")                                                 \
    X(move_ns, mover, "time inside moving calls")                                                             \
    X(budget_waits, mover, "batches that waited for the budget")                                              \
    X(budget_wait_ns, mover, "time the mover waited for the budget")                                          \
    X(mover_cpu_ns, mover, "CPU time of pghot-mover")

enum class Counter : uint16_t {
#define PGHOT_X(name, owner, text) name,
    PGHOT_COUNTERS(PGHOT_X)
#undef PGHOT_X
        kCount
};
inline constexpr unsigned kCounters = static_cast<unsigned>(Counter::kCount);

struct CounterInfo {
    const char* name;
    const char* text;
};
inline constexpr std::array<CounterInfo, kCounters> kCounterInfo{{
#define PGHOT_X(name, owner, text) {#name, text},
    PGHOT_COUNTERS(PGHOT_X)
#undef PGHOT_X
}};

// One writer per counter (the thread named above), readers anywhere: plain load, add, store, no locked instruction.
class Counters {
public:
    void add(Counter which, uint64_t amount = 1) {
        auto& cell = cells_[static_cast<unsigned>(which)];
        cell.store(cell.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
    }
    void set(Counter which, uint64_t value) {
        cells_[static_cast<unsigned>(which)].store(value, std::memory_order_relaxed);
    }
    uint64_t get(Counter which) const { return cells_[static_cast<unsigned>(which)].load(std::memory_order_relaxed); }

private:
    std::array<std::atomic<uint64_t>, kCounters> cells_{};
};

}    // namespace pghot
