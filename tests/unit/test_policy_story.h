// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "runtime/policy/promotion_policy.h"

namespace pghot::test {

// The published machine: nodes 0 and 1 with CPUs and DRAM, node 2 the expander. CPU n is on node n % 2.
inline Topology published_machine() {
    Topology topology;
    topology.node_count = 3;
    topology.cpu_count = 4;
    topology.node_of_cpu.fill(-1);
    for (unsigned cpu = 0; cpu < 4; ++cpu) topology.node_of_cpu[cpu] = static_cast<int16_t>(cpu % 2);
    for (unsigned i = 0; i < 3; ++i)
        topology.nodes[i] = {.online_memory = true, .has_cpus = i < 2, .allowed = true, .lower_tier = i == 2};
    topology.distance[0] = {10, 12, 50};
    topology.distance[1] = {12, 10, 50};
    topology.distance[2] = {255, 255, 10};
    return topology;
}

// A policy with its storage and a clock that stands still until told otherwise. Pages are numbered from the start of
// chunk 1000; one call is one event of the story.
class Story {
public:
    static constexpr uintptr_t kBase = 1000 * kChunkBytes;

    explicit Story(const PolicyParameters& parameters, const Topology& topology = published_machine(),
                   size_t chunks = 64, const ObjectSource* objects = nullptr)
        : storage_(HeatTable::bytes_for(chunks)), policy_(topology, parameters, storage_, objects) {}

    static uintptr_t page(uint64_t number) { return kBase + number * kPageBytes; }

    void wait_ms(uint64_t ms) { now_ = now_ + ms * kNsPerMs; }
    TimeNs now() const { return now_; }

    bool sample(uint64_t number, int16_t node = 0, ServedBy served_by = ServedBy::kExtMem) {
        return policy_.record(
            {.address = page(number) + 8, .time = now_, .node = NodeId{node}, .served_by = served_by});
    }
    bool sample_huge(uint64_t number, int16_t node = 0) {
        return policy_.record({.address = page(number),
                               .time = now_,
                               .node = NodeId{node},
                               .served_by = ServedBy::kExtMem,
                               .huge = true});
    }
    // Samples `count` pages, `step` apart, one at a time with `gap_ms` between, in no order of addresses: every other
    // one, then those between them.
    void sample_each(uint64_t first, unsigned count, unsigned step, uint64_t gap_ms = 20, int16_t node = 0) {
        for (unsigned odd : {0u, 1u})
            sweep(first + uint64_t{odd} * step, (count + 1 - odd) / 2, 2 * step, gap_ms, node);
    }
    // The same from one end to the other.
    void sweep(uint64_t first, unsigned count, unsigned step, uint64_t gap_ms, int16_t node = 0) {
        for (unsigned i = 0; i < count; ++i) {
            sample(first + uint64_t{i} * step, node);
            wait_ms(gap_ms);
        }
    }
    std::vector<Move> plan(size_t places = 64) {
        std::vector<Move> moves(places);
        moves.resize(policy_.plan(now_, moves));
        return moves;
    }
    // Plans until everything that waits for company is out too.
    std::vector<Move> plan_all() {
        auto moves = plan();
        wait_ms(300);
        for (const Move& move : plan()) moves.push_back(move);
        return moves;
    }
    void report(const Move& move, PageOutcome outcome) { report(move.address, move.pages, outcome, move.target); }
    void report(uintptr_t address, uint32_t pages, PageOutcome outcome, NodeId target = NodeId{0}) {
        policy_.report({.address = address,
                        .pages = pages,
                        .outcome = outcome,
                        .node = outcome == PageOutcome::kPromoted ? target : NodeId{2},
                        .time = now_,
                        .target = target});
    }
    void report_all(const std::vector<Move>& moves, PageOutcome outcome) {
        for (const Move& move : moves) report(move, outcome);
    }

    PromotionPolicy& policy() { return policy_; }
    const PageRecord& record_of(uint64_t number) const {
        return policy_.heat().pages(policy_.heat().find(page(number) / kChunkBytes))[page_in_chunk(page(number))];
    }
    const ChunkHeader& header_of(uint64_t number) const {
        return policy_.heat().header(policy_.heat().find(page(number) / kChunkBytes));
    }

private:
    std::vector<std::byte> storage_;
    PromotionPolicy policy_;
    TimeNs now_{100 * kNsPerSecond};
};

inline uint32_t pages_in(const std::vector<Move>& moves) {
    uint32_t pages = 0;
    for (const Move& move : moves) pages += move.pages;
    return pages;
}

}    // namespace pghot::test
