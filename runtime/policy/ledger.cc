// SPDX-License-Identifier: Apache-2.0
#include "runtime/policy/ledger.h"

#include <algorithm>

#include "runtime/policy/occupancy.h"

namespace pghot {
namespace {

constexpr double kMarginStep = 0.5;
constexpr double kMostMargin = 16;
constexpr Tick kDampEvery = ticks_of_ms(2000);
constexpr uint64_t kFewReturns = 8;    // no pattern yet
// Different pages sampled in the window that say the whole chunk is in use: half of what the chunk rule asks for, since
// the window may be half as long as that which decided.
constexpr uint32_t kRightPages = 4;

}    // namespace

void Ledger::set_economy(const MoveEconomy& economy) {
    pages_per_sample_ = kPagesPerChunk;
    if (!economy.gain_known || economy.page_ns == 0) return;
    const auto gain = static_cast<uint64_t>(std::max(economy.sample_gain_ns, int64_t{0}));
    pages_per_sample_ = static_cast<uint32_t>(std::min<uint64_t>(gain / economy.page_ns, kPagesPerChunk));
}

void Ledger::pay(ChunkHeader& header) {
    const uint32_t pages = std::min<uint32_t>(header.unpaid, pages_per_sample_);
    header.unpaid = static_cast<uint16_t>(header.unpaid - pages);
    counters_.paid += pages;
}

void Ledger::demoted(ChunkHeader& header) {
    ++moves_;
    if (header.unpaid == 0) return;
    --header.unpaid;
    ++counters_.wasted;
    ++counters_.ping_pong;
}

void Ledger::judge_chunk(ChunkHeader& header, Tick now, const HeatRules& rules) {
    if (!header.whole || header.judged || header.planned != 0) return;
    if (later_by(now, header.moved + rules.window) < 0) return;
    header.judged = 1;
    const uint32_t pages = header.window_pages();
    const bool right = pages >= kRightPages && !is_skewed(header.window_samples(), pages);
    ++(right ? counters_.chunks_right : counters_.chunks_wrong);
}

void Ledger::damp(Tick now) {
    if (later_by(now, damped_ + kDampEvery) < 0) return;
    damped_ = now;
    const uint64_t moves = moves_ - damped_moves_;
    const uint64_t returns = counters_.ping_pong - damped_returns_;
    damped_moves_ = moves_;
    damped_returns_ = counters_.ping_pong;
    if (returns >= kFewReturns && returns * 20 > moves)
        margin_ = std::min(margin_ + kMarginStep, kMostMargin);
    else if (returns * 50 <= moves)
        margin_ -= (margin_ - kLeastMargin) / 8;
}

}    // namespace pghot
