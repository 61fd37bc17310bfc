// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/function_ref.h"
#include "runtime/policy/heat_table.h"
#include "runtime/policy/move.h"
#include "runtime/policy/target_map.h"

namespace pghot {

// Evidence that a chunk, or a page of a chunk that two nodes share, is used by one node only: each sample of that node
// counts one, each of another takes away kOtherCosts. Under even use by two nodes a score of s comes up once in
// e^(0.656 s) samples, as e^x + e^-4x = 2 has the root 0.656: for a chunk once in 2*10^11. Where one node has four
// fifths of the samples or more the score rises; and once the pages are there, nothing speaks for the other node.
inline constexpr unsigned kOtherCosts = 4;
inline constexpr uint8_t kChunkScore = 40;
inline constexpr uint8_t kPageScore = 16;
// Of these samples, at least so many of DRAM of another node than the caller's: there is something to be gained.
inline constexpr uint8_t kRemoteSamples = 8;
// The score must have been above zero for so many windows: threads of two nodes may use memory in turn. A single page,
// of which less is known, is not moved again before that either.
inline constexpr unsigned kSureWindows = 2;
inline constexpr unsigned kPageSureWindows = 4;
// A chunk out of which pages were moved, into the top tier or within it, is left alone for so many windows.
inline constexpr unsigned kRestWindows = 8;

// Pages in DRAM that belong on another DRAM node (PGHOT_MISPLACED), as the kernel's NUMA balancing puts right. Takes
// loads that DRAM served, of which the processor tells whether it was the caller's own. Memory that several nodes use
// stays where it is. Owned by the policy, sampler thread only. Pure.
class Rehome {
public:
    // Writes a move of pages to `target`; false when there is no room for it.
    using Emit = FunctionRef<bool(uintptr_t address, uint32_t pages, NodeId target, MoveRule rule)>;

    // A load that DRAM served. `page`: of the chunk; `caller` as TargetMap has it; `remote`: not of the caller's node.
    // Any time a little before the newest. Samples are only counted here: rings are drained one after the other, so
    // their order says nothing.
    void note(uint64_t chunk, unsigned page, uint8_t caller, bool remote, const HeatRules& rules, Tick now);
    // Between two drains. Weighs what was counted, about ten times a second (3072 entries, some 10 us), and plans what
    // is clear. Pages that are planned otherwise, or whose own samples say another node than their chunk's, are left
    // out; what is emitted is marked as planned. `open`: nodes, bit each, with room.
    void plan(HeatTable& heat, const TargetMap& targets, uint64_t open, Tick now, Emit emit);

private:
    struct Evidence {
        uint64_t unit;    // a chunk's number, or a page's; 0: free
        Tick last;        // newest sample
        Tick since;       // when the score rose above zero
        uint8_t caller;
        uint8_t other;     // last caller that was another one
        uint8_t score;     // of `caller`
        uint8_t mine;      // samples since they were last weighed: of `caller`
        uint8_t others;    // likewise of others
        uint8_t remote;    // samples of `caller` from another node than its own, while the score was above zero
    };
    // What it takes to be clear.
    struct Demand {
        uint8_t score;
        unsigned windows;
    };
    // One table of evidence: the place of a unit is its number modulo the size.
    using Table = std::span<Evidence>;

    static void count(Table table, uint64_t unit, uint8_t caller, bool remote, const HeatRules& rules, Tick now);
    static void weigh(Evidence& evidence, Tick now);
    static bool is_clear(const Evidence& evidence, const Demand& demand, const HeatRules& rules, Tick now);
    bool chunk_agrees(uint64_t chunk, uint8_t caller) const;
    static bool is_resting(const ChunkHeader& header, const HeatRules& rules, Tick now);
    static bool plan_chunk(HeatTable& heat, HeatTable::Block block, uint8_t caller, NodeId target, Emit emit);
    static bool plan_page(HeatTable& heat, HeatTable::Block block, unsigned index, NodeId target, Emit emit);

    static constexpr size_t kChunks = 2048;    // 4 GiB under suspicion at a time
    static constexpr size_t kPages = 1024;
    std::array<Evidence, kChunks> chunks_{};
    std::array<Evidence, kPages> pages_{};
    Tick weighed_ = 0;
};

}    // namespace pghot
