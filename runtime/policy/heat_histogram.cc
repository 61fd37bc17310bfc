// SPDX-License-Identifier: Apache-2.0
#include "runtime/policy/heat_histogram.h"

#include <algorithm>

namespace pghot {
namespace {

// Evidence is halved this often: long enough for thousands of samples, short enough to follow a program's phases.
constexpr Tick kHalving = ticks_of_ms(4000);
constexpr double kSecondsPerTick = static_cast<double>(kTickNs) / kNsPerSecond;

// Rounded up, and no call of libm, which the library does not need otherwise.
uint32_t square_root(uint32_t value) {
    uint32_t root = 0;
    while (uint64_t{root} * root < value) ++root;
    return root;
}

}    // namespace

void HeatHistogram::end_turn(Tick now) {
    if (!started_) turned_ = halved_ = now;
    const double seconds = (now - turned_) * kSecondsPerTick;
    const bool halve = now - halved_ >= kHalving;
    for (unsigned i = 0; i < kHeatClasses; ++i) {
        // Samples of before the first turn were taken while nobody counted pages.
        if (started_) seen_[i] += samples_[i];
        const auto [fewer, more] = std::minmax(telling_before_[i], telling_now_[i]);
        exposed_least_[i] += seconds * fewer;
        exposed_most_[i] += seconds * more;
        if (!halve) continue;
        seen_[i] /= 2;
        exposed_least_[i] /= 2;
        exposed_most_[i] /= 2;
    }
    samples_ = {};
    pages_ = counting_;
    counting_ = {};
    telling_before_ = telling_now_;
    telling_now_ = {};
    turned_ = now;
    if (halve) halved_ = now;
    started_ = true;
}

double HeatHistogram::least_rate(HeatClass which) const {
    const uint32_t seen = seen_[which];
    const uint32_t least = seen - std::min(2 * square_root(seen), seen);
    return exposed_most_[which] > 0 ? least / exposed_most_[which] : 0;
}

double HeatHistogram::most_rate(HeatClass which) const {
    constexpr double kUnknown = 1e9;
    const uint32_t seen = seen_[which];
    const double exposed = exposed_least_[which];
    return exposed > 0 ? (seen + 2 * square_root(seen) + 2) / exposed : kUnknown;
}

}    // namespace pghot
