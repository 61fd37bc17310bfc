// SPDX-License-Identifier: Apache-2.0
#include "runtime/migrate/call_size.h"

#include <gtest/gtest.h>

namespace pghot {
namespace {

constexpr uint64_t kLimit = CallSize::kLongestWaitNs;

TEST(CallSize, SlowCallsAreHalvedDownToTheLeast) {
    CallSize size(512);
    EXPECT_EQ(size.pages(), 512u);
    size.note(512, kLimit);
    EXPECT_EQ(size.pages(), 512u) << "just in time";
    size.note(512, kLimit + 1);
    EXPECT_EQ(size.pages(), 256u);
    for (int i = 0; i < 10; ++i) size.note(size.pages(), 10 * kLimit);
    EXPECT_EQ(size.pages(), CallSize::kFewest);
}

TEST(CallSize, GrowsAgainOnlyWhenTwiceAsMuchWouldBeInTime) {
    CallSize size(512);
    size.note(512, 2 * kLimit);
    size.note(256, kLimit / 2 + 1);
    EXPECT_EQ(size.pages(), 256u);
    size.note(256, kLimit / 2);
    EXPECT_EQ(size.pages(), 512u);
    size.note(512, kLimit / 50);
    EXPECT_EQ(size.pages(), 512u) << "never above what was allowed";
}

// 512 pages at a time: a call of 2048 holds nobody up for longer than a quarter of it.
TEST(CallSize, BeyondWhatTheKernelTakesAtATimeACallMayTakeLonger) {
    CallSize size(2048);
    size.note(2048, 4 * kLimit);
    EXPECT_EQ(size.pages(), 2048u);
    size.note(2048, 4 * kLimit + 4);
    EXPECT_EQ(size.pages(), 256u) << "512 would be one step of the kernel's still, which was too long";
    size.note(256, kLimit / 2);
    size.note(512, kLimit);
    EXPECT_EQ(size.pages(), 1024u) << "no longer a wait for anybody";
    size.note(1024, 2 * kLimit);
    EXPECT_EQ(size.pages(), 2048u);
}

TEST(CallSize, SmallCallsSayNothing) {
    CallSize size(2048);
    for (const uint32_t pages : {1u, CallSize::kFewest - 1, 255u}) size.note(pages, 100 * kLimit);
    EXPECT_EQ(size.pages(), 2048u);
    size.note(256, 100 * kLimit);
    EXPECT_EQ(size.pages(), 256u);
}

TEST(CallSize, AnAllowanceBelowTheLeastIsTheLeast) {
    CallSize size(1);
    EXPECT_EQ(size.pages(), CallSize::kFewest);
    size.note(CallSize::kFewest, 0);
    EXPECT_EQ(size.pages(), CallSize::kFewest);
}

}    // namespace
}    // namespace pghot
