// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>

#include "runtime/engine/drain_pace.h"

namespace pghot {
namespace {

TEST(DrainPace, AProgramThatSleepsIsWokenTenTimesASecond) {
    DrainPace pace;
    uint64_t wait = 0;
    for (int i = 0; i < 50; ++i) wait = pace.next(0, false, 0);
    EXPECT_EQ(wait, 100 * kNsPerMs);
}

TEST(DrainPace, TheFirstSampleAfterAPauseEndsTheLongWait) {
    DrainPace pace;
    for (int i = 0; i < 50; ++i) pace.next(0, false, 0);
    EXPECT_LE(pace.next(1, true, 0), 20 * kNsPerMs);
}

TEST(DrainPace, AFillingRingIsDrainedMoreOften) {
    DrainPace pace;
    uint64_t wait = 0;
    for (int i = 0; i < 10; ++i) wait = pace.next(90, true, 0);
    EXPECT_EQ(wait, kNsPerMs) << "but never in a busy loop";
}

TEST(DrainPace, EveryRungDoublesTheLongestWaits) {
    for (const auto [rung, busy_ms, idle_ms] : {std::array{0, 20, 100}, {1, 40, 200}, {3, 160, 800}, {4, 320, 1000}}) {
        DrainPace pace;
        uint64_t wait = 0;
        for (int i = 0; i < 50; ++i) wait = pace.next(0, true, static_cast<unsigned>(rung));
        EXPECT_EQ(wait, static_cast<uint64_t>(busy_ms) * kNsPerMs);
        for (int i = 0; i < 50; ++i) wait = pace.next(0, false, static_cast<unsigned>(rung));
        EXPECT_EQ(wait, static_cast<uint64_t>(idle_ms) * kNsPerMs);
        EXPECT_LE(pace.next(30, true, 0), 20 * kNsPerMs) << "a rung less counts at once";
    }
}

// A ring that fills at a steady rate: the wait settles where the ring is found about a quarter full.
TEST(DrainPace, SettlesAtAQuarter) {
    DrainPace pace;
    constexpr double kPercentPerMs = 5;
    uint64_t wait = pace.next(0, true, 0);
    for (int i = 0; i < 100; ++i)
        wait = pace.next(static_cast<unsigned>(static_cast<double>(wait) / kNsPerMs * kPercentPerMs), true, 0);
    const double percent = static_cast<double>(wait) / kNsPerMs * kPercentPerMs;
    EXPECT_LE(percent, 38);
    EXPECT_GE(percent, 6);
}

}    // namespace
}    // namespace pghot
