// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <random>
#include <vector>

#include "runtime/base/topology.h"
#include "runtime/policy/promotion_policy.h"
#include "runtime/policy/token_budget.h"

namespace pghot::sim {

using Random = std::mt19937_64;

// The machine of the published measurements: nodes 0 and 1 with CPUs and DRAM, CPU n on node n % 2, node 2 the
// expander.
Topology published_machine(unsigned cpus);

// A thread of the simulated program, sampled at random times of this mean rate.
struct Thread {
    uint16_t cpu = 0;
    double samples_per_second = 2115;         // published: 5,991,177 samples in 44.27 s on 64 CPUs
    std::function<uint64_t(Random&)> page;    // which page the next sampled access touches
    double store_share = 0.5;                 // stores carry no level
};

// Page numbers for Thread::page.
std::function<uint64_t(Random&)> uniform(uint64_t first, uint64_t count);
// A front that goes over the pages again and again, `pages_per_sample` further from one sample to the next on average.
std::function<uint64_t(Random&)> sweep(uint64_t first, uint64_t count, double pages_per_sample);
// Rank 1 is `order[0]`, and so on; probability ~ 1 / rank^exponent.
std::function<uint64_t(Random&)> zipf(std::vector<uint64_t> order, double exponent);

// A large block of the program.
struct Block {
    uint64_t first_page = 0;
    uint64_t pages = 0;
};

struct Settings {
    PolicyParameters policy{};
    std::vector<Block> blocks{};    // what the policy may know as objects
    MoveEconomy economy{};          // measured from the start on; zero: never
    uint64_t pages = 0;             // of the program; all on the expander at first
    uint32_t rate_limit_mbps = 65536;
    size_t heat_chunks = 0;                          // room of the heat table; 0: as many as the program has
    std::atomic<uint64_t>* budget_word = nullptr;    // shared with other simulators; null: its own
    // Time of an access that DRAM serves, in those that the expander serves. Samples are a share of accesses, so below
    // 1 threads are sampled more often as their pages come home: samples_per_second is the rate on the expander alone.
    double dram_cost = 1;
    // Costs of moving. The emulated machine's: about 20 us a page in large calls; its many small calls cost 109 to 354
    // us a page of 11, so about 1 ms a call.
    uint64_t call_ns = 1000000;
    uint64_t page_ns = 20000;
    uint32_t drain_ms = 50;    // the sampler empties its rings
    uint32_t plan_ms = 100;    // PGHOT_MIGRATE_SLEEP
    double busy_share = 0;     // pages that answer EBUSY
    // Room for the program's pages on each node of DRAM; 0: more than it has, and nothing is read of it.
    std::array<uint64_t, 2> node_pages{};
    uint64_t seed = 1;
};

// A program, its memory and the real policy and budget on a virtual clock. Deterministic for a seed.
//
//   threads --samples, in rings drained one after the other--> policy --plan--> queue --budget--> mover --outcomes-->
//   policy
class Simulator {
public:
    Simulator(const Topology& topology, const Settings& settings);

    void add(Thread thread) { threads_.push_back({std::move(thread), now_}); }
    void remove_threads() { threads_.clear(); }
    void run_ms(uint64_t ms) { run_until(now_ + ms * kNsPerMs); }
    void run_until(TimeNs end);
    // One sample from elsewhere (a replay), and time without threads.
    void feed(const Sample& sample);
    // The program, or someone else, moves pages without telling.
    void place(uint64_t first, uint64_t count, int16_t node);
    // Unmapped and mapped again: new pages on the expander.
    void reuse(uint64_t first, uint64_t count);

    static uintptr_t address(uint64_t page) { return kBase + page * kPageBytes; }
    TimeNs now() const { return now_; }
    const Topology& topology() const { return topology_; }
    PromotionPolicy& policy() { return policy_; }
    const PromotionPolicy& policy() const { return policy_; }
    uint64_t pages_on(int16_t node, uint64_t first, uint64_t count) const;
    double share_on(int16_t node, uint64_t first, uint64_t count) const {
        return static_cast<double>(pages_on(node, first, count)) / static_cast<double>(count);
    }
    unsigned most_moves_of_a_page() const;
    uint64_t pages_demoted() const { return pages_demoted_; }
    uint64_t pages_promoted_again() const { return pages_promoted_again_; }    // after they had been demoted
    // Another program takes what is free on a node.
    void take_room(int16_t node) {
        settings_.node_pages[static_cast<size_t>(node)] = on_node_[static_cast<size_t>(node)];
    }

    struct Moved {
        TimeNs time;
        uint64_t bytes;
    };
    const std::vector<Moved>& calls() const { return calls_; }    // moving calls, when they were allowed to start
    uint64_t pages_moved() const { return pages_moved_; }
    uint64_t samples() const { return samples_; }
    uint64_t samples_home() const { return samples_home_; }    // taken of pages in the top tier
    // Of the levels seen in the last run_ms, loads only.
    double dram_share() const;
    // CPU time of plan() on this machine: of no influence on what is simulated.
    struct PlanCost {
        uint64_t calls = 0;
        std::chrono::nanoseconds sum{};
        std::chrono::nanoseconds most{};
    };
    const PlanCost& plan_cost() const { return plan_cost_; }

private:
    static constexpr uintptr_t kBase = 0x7f0000000000;
    static constexpr uint64_t kBatchPages = 2048;    // 8 MiB a call

    struct Running {
        Thread thread;
        TimeNs next;
    };
    struct Batch {
        std::vector<Move> moves;    // of one kind and target
        uint64_t pages = 0;         // to be moved
        TimeNs done{};
        bool started = false;
    };

    void sample_until(TimeNs end);
    double pace();
    void take_sample(const Thread& thread, TimeNs time);
    void plan();
    void move_until(TimeNs end);
    bool fill_batch();
    void finish_batch();
    PageOutcome asked_about(const Move& move, uint64_t page) const;
    static bool is_moved(PageOutcome outcome);
    void report(const Move& move, uint64_t page, PageOutcome outcome);
    void note_moved(uint64_t page, NodeId to);
    bool is_full(NodeId node) const;
    void read_room();
    bool is_ours(uint64_t page) const { return page < node_.size(); }
    bool is_lower(uint64_t page) const { return topology_.is_lower(NodeId{node_[page]}); }

    // The blocks, as the allocator would tell.
    class Blocks final : public ObjectSource {
    public:
        explicit Blocks(const std::vector<Block>& blocks) : blocks_(blocks) {}
        ObjectRange object_at(uintptr_t address) const override;

    private:
        const std::vector<Block>& blocks_;
    };

    Topology topology_;
    Settings settings_;
    Blocks blocks_{settings_.blocks};
    Random random_;
    std::vector<std::byte> heat_storage_;
    PromotionPolicy policy_;
    std::atomic<uint64_t> own_budget_word_{0};
    TokenBudget budget_;
    TimeNs now_{10 * kNsPerSecond};
    TimeNs mover_now_ = now_;
    TimeNs next_drain_ = now_;
    TimeNs next_plan_ = now_;
    std::vector<Running> threads_;
    std::vector<int16_t> node_;
    std::array<uint64_t, kMaxNodes> on_node_{};    // pages
    std::vector<uint8_t> moves_of_page_;
    std::vector<bool> was_demoted_;
    std::deque<Move> queue_;
    Batch batch_;
    std::vector<Moved> calls_;
    uint64_t pages_moved_ = 0;
    uint64_t pages_demoted_ = 0;
    uint64_t pages_promoted_again_ = 0;
    uint64_t samples_ = 0;
    uint64_t samples_home_ = 0;
    uint64_t paced_samples_ = 0;    // what the two above were when pace() was asked last
    uint64_t paced_home_ = 0;
    double pace_ = 1;
    PlanCost plan_cost_;
    uint64_t loads_from_dram_ = 0;
    uint64_t loads_ = 0;
};

}    // namespace pghot::sim
