// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/policy/chunk_header.h"
#include "runtime/policy/payback.h"
#include "runtime/policy/ticks.h"

namespace pghot {

// What became of the moves.
struct LedgerCounters {
    uint64_t paid = 0;            // pages promoted whose chunk's samples from DRAM earned the cost of moving them
    uint64_t wasted = 0;          // pages demoted, or their memory gone, before that
    uint64_t ping_pong = 0;       // pages moved back: demoted unpaid, or up again while known as demoted
    uint64_t chunks_right = 0;    // chunks moved whole of which enough pages were sampled in a later window
    uint64_t chunks_wrong = 0;    // likewise, too few or only some over and over
};

// Keeps the account of moves: who paid, who was moved back, how often the chunk rule was right; and damps the exchange
// of pages when too many go to and fro. A sample from DRAM pays for as many pages of its chunk as what its accesses
// save is worth (MoveEconomy): with 2 ms a sample and 5 us a page for 400.
//
// Pages whose memory is evicted from the heat table unpaid are in neither count. Pure; owned by the policy.
class Ledger {
public:
    // Until it is known, a sample pays for its whole chunk.
    void set_economy(const MoveEconomy& economy);
    void promoted(ChunkHeader& header) {
        if (header.unpaid != UINT16_MAX) ++header.unpaid;
        ++moves_;
    }
    // A sample of a page that is at home.
    void earned(ChunkHeader& header) {
        if (header.unpaid != 0) pay(header);
    }
    void demoted(ChunkHeader& header);
    void came_back() { ++counters_.ping_pong; }
    // All of the chunk is unmapped or reused.
    void forgotten(const ChunkHeader& header) { counters_.wasted += header.unpaid; }
    // Judges the move of a whole chunk once, when a window has gone by since.
    void judge_chunk(ChunkHeader& header, Tick now, const HeatRules& rules);

    // How many times hotter than what makes room for it a page must be. Grows, up to 16, while more than one move in
    // twenty is a page moved back; falls back in quiet.
    double margin() const { return margin_; }
    void damp(Tick now);

    const LedgerCounters& counters() const { return counters_; }

private:
    // Simulated zipf (tests/sim/test_capacity): 1.5 gains most within the first 20 s; below 1.2 equal pages of a
    // uniform set begin to change places by chance.
    static constexpr double kLeastMargin = 1.5;

    void pay(ChunkHeader& header);

    uint32_t pages_per_sample_ = kPagesPerChunk;
    LedgerCounters counters_{};
    uint64_t moves_ = 0;
    uint64_t damped_moves_ = 0;    // moves_ and ping_pong when damp() looked last
    uint64_t damped_returns_ = 0;
    Tick damped_ = 0;
    double margin_ = kLeastMargin;
};

}    // namespace pghot
