// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "runtime/engine/drain_pace.h"

namespace pghot {
namespace {

TEST(DrainPace, AProgramThatSleepsIsWokenTenTimesASecond) {
    DrainPace pace;
    uint64_t wait = 0;
    for (int i = 0; i < 50; ++i) wait = pace.next(0, false);
    EXPECT_EQ(wait, 100 * kNsPerMs);
}

TEST(DrainPace, TheFirstSampleAfterAPauseEndsTheLongWait) {
    DrainPace pace;
    for (int i = 0; i < 50; ++i) pace.next(0, false);
    EXPECT_LE(pace.next(1, true), 20 * kNsPerMs);
}

TEST(DrainPace, AFillingRingIsDrainedMoreOften) {
    DrainPace pace;
    uint64_t wait = 0;
    for (int i = 0; i < 10; ++i) wait = pace.next(90, true);
    EXPECT_EQ(wait, kNsPerMs) << "but never in a busy loop";
}

// A ring that fills at a steady rate: the wait settles where the ring is found about a quarter full.
TEST(DrainPace, SettlesAtAQuarter) {
    DrainPace pace;
    constexpr double kPercentPerMs = 5;
    uint64_t wait = pace.next(0, true);
    for (int i = 0; i < 100; ++i)
        wait = pace.next(static_cast<unsigned>(static_cast<double>(wait) / kNsPerMs * kPercentPerMs), true);
    const double percent = static_cast<double>(wait) / kNsPerMs * kPercentPerMs;
    EXPECT_LE(percent, 38);
    EXPECT_GE(percent, 6);
}

}    // namespace
}    // namespace pghot
