// SPDX-License-Identifier: Apache-2.0
#include "runtime/policy/plateau.h"

#include <algorithm>

namespace pghot {
namespace {

constexpr uint64_t kWindowNs = kNsPerSecond;
constexpr uint64_t kCalmSeconds = 3;           // one freq_window: what was sampled once had the time to become hot
constexpr uint64_t kSteadyCalmSeconds = 12;    // much lies in the lower tier: four of them
constexpr uint64_t kEnoughSamples = 256;
constexpr uint64_t kFewPages = 16;    // single pages now and then are planned for ever where heat is skewed
constexpr uint64_t kFewChunks = 8;
constexpr double kLowShare = 1.0 / 32;
constexpr double kSteadyChange = 1.0 / 16;
constexpr double kRelevantRise = 1.0 / 32;
constexpr double kFewExtmem = 4;

uint64_t levels(const PlateauSigns& signs) { return signs.dram + signs.extmem; }

double share_of(const PlateauSigns& signs) {
    return levels(signs) == 0 ? 0 : static_cast<double>(signs.extmem) / static_cast<double>(levels(signs));
}

}    // namespace

unsigned Plateau::step(TimeNs now, const PlateauSigns& signs) {
    window_.dram += signs.dram;
    window_.extmem += signs.extmem;
    window_.pages_planned += signs.pages_planned;
    window_.pages_returned += signs.pages_returned;
    window_.new_threads += signs.new_threads;
    window_.new_chunks += signs.new_chunks;
    if (is_disturbed())
        wake(now);
    else if (now - window_start_ >= static_cast<int64_t>(kWindowNs))
        end_window(now);
    return rung_;
}

bool Plateau::is_disturbed() const {
    return window_.pages_planned >= kFewPages || window_.pages_returned >= kFewPages || window_.new_threads > 0 ||
           window_.new_chunks >= kFewChunks || (share_known_ && has_risen());
}

// More from the lower tier than the calm's share explains: by four standard deviations, and by enough to matter. So
// four samples are enough where there were none.
bool Plateau::has_risen() const {
    const auto all = static_cast<double>(levels(window_));
    const auto extmem = static_cast<double>(window_.extmem);
    const double expected = all * share_;
    const double excess = extmem - expected;
    return excess >= kFewExtmem && excess * excess > 16 * expected && excess > all * kRelevantRise;
}

void Plateau::wake(TimeNs now) {
    rung_ = 0;
    calm_seconds_ = 0;
    share_known_ = false;
    window_ = {};
    window_start_ = now;
}

void Plateau::end_window(TimeNs now) {
    const PlateauSigns ended = window_;
    window_ = {};
    window_start_ = now;
    if (levels(ended) < kEnoughSamples) return;    // nothing to save, and nothing to tell by
    const double share = share_of(ended);
    const bool is_steady = share_known_ && share - share_ < kSteadyChange && share_ - share < kSteadyChange;
    calm_seconds_ = is_steady || share <= kLowShare ? calm_seconds_ + 1 : 0;
    share_ = is_steady ? (3 * share_ + share) / 4 : share;
    share_known_ = true;
    const bool is_low = share_ <= kLowShare;
    if (calm_seconds_ < (is_low ? kCalmSeconds : kSteadyCalmSeconds)) return;
    rung_ = std::max(rung_, std::min(rung_ + 1, is_low ? kMostRung : kSteadyRung));
}

}    // namespace pghot
