// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <cstring>
#include <vector>

#include "runtime/kernel/perf_ring.h"

namespace pghot {
namespace {

// A ring on an array, with the kernel's side played by the test.
class PerfRingTest : public testing::Test {
protected:
    void write(uint32_t type, uint16_t size, uint8_t fill) {
        const perf_event_header header{type, 0, size};
        std::vector<uint8_t> record(size < sizeof header ? sizeof header : size, fill);
        std::memcpy(record.data(), &header, sizeof header);
        for (uint8_t byte : record) data[control.data_head++ % data.size()] = std::byte{byte};
    }
    std::vector<std::pair<uint32_t, std::vector<uint8_t>>> drain() {
        std::vector<std::pair<uint32_t, std::vector<uint8_t>>> out;
        unread = ring.drain([&](const PerfRecord& record) {
            std::vector<uint8_t> body(record.body.size());
            std::memcpy(body.data(), record.body.data(), body.size());
            out.emplace_back(record.type, body);
        });
        return out;
    }
    void start_at(uint64_t position) { control.data_head = control.data_tail = position; }

    perf_event_mmap_page control{};
    std::vector<std::byte> data = std::vector<std::byte>(4096);
    PerfRing ring{&control, data};
    size_t unread = 0;
};

TEST_F(PerfRingTest, AnEmptyRingGivesNothing) {
    EXPECT_TRUE(drain().empty());
    EXPECT_EQ(unread, 0u);
}

TEST_F(PerfRingTest, RecordsComeInOrderAndTheRoomGoesBack) {
    write(PERF_RECORD_SAMPLE, 24, 1);
    write(PERF_RECORD_LOST, 32, 2);
    const auto records = drain();
    ASSERT_EQ(records.size(), 2u);
    EXPECT_EQ(records[0].first, uint32_t{PERF_RECORD_SAMPLE});
    EXPECT_EQ(records[0].second, std::vector<uint8_t>(16, 1));
    EXPECT_EQ(records[1].second, std::vector<uint8_t>(24, 2));
    EXPECT_EQ(unread, 56u);
    EXPECT_EQ(control.data_tail, control.data_head);
}

TEST_F(PerfRingTest, ARecordThatWrapsIsWhole) {
    start_at(3 * 4096 - 16);
    write(PERF_RECORD_SAMPLE, 80, 7);
    const auto records = drain();
    ASSERT_EQ(records.size(), 1u);
    EXPECT_EQ(records[0].second, std::vector<uint8_t>(72, 7));
}

TEST_F(PerfRingTest, AHeaderAtTheVeryEndIsRead) {
    start_at(4096 - 8);
    write(PERF_RECORD_SAMPLE, 16, 9);
    ASSERT_EQ(drain().size(), 1u);
}

TEST_F(PerfRingTest, ASizeBelowTheHeaderResynchronises) {
    write(PERF_RECORD_SAMPLE, 24, 1);
    write(PERF_RECORD_SAMPLE, 0, 2);
    write(PERF_RECORD_SAMPLE, 24, 3);
    EXPECT_EQ(drain().size(), 1u);
    EXPECT_EQ(control.data_tail, control.data_head);
    write(PERF_RECORD_SAMPLE, 24, 4);
    EXPECT_EQ(drain().size(), 1u) << "reading goes on with what comes next";
}

TEST_F(PerfRingTest, ASizeBeyondTheHeadIsNotBelieved) {
    write(PERF_RECORD_SAMPLE, 24, 1);
    const uint16_t huge = 4000;
    std::memcpy(data.data() + 6, &huge, sizeof huge);
    EXPECT_TRUE(drain().empty());
    EXPECT_EQ(control.data_tail, control.data_head);
}

TEST_F(PerfRingTest, AHeadThatOverranTheRingIsNotFollowed) {
    write(PERF_RECORD_SAMPLE, 24, 1);
    control.data_head += 10000;
    EXPECT_TRUE(drain().empty());
    EXPECT_EQ(control.data_tail, control.data_head);
}

TEST_F(PerfRingTest, ALongRecordIsCutButSkippedWhole) {
    write(PERF_RECORD_MMAP2, 1000, 5);
    write(PERF_RECORD_SAMPLE, 24, 6);
    const auto records = drain();
    ASSERT_EQ(records.size(), 2u);
    EXPECT_EQ(records[0].second.size(), 504u);
    EXPECT_EQ(records[1].second, std::vector<uint8_t>(16, 6));
}

TEST_F(PerfRingTest, AFullRingIsReadWhole) {
    for (int i = 0; i < 4096 / 64; ++i) write(PERF_RECORD_SAMPLE, 64, static_cast<uint8_t>(i));
    EXPECT_EQ(drain().size(), 64u);
    EXPECT_EQ(unread, ring.capacity_bytes());
}

TEST(PerfRing, ADefaultRingIsEmpty) {
    PerfRing ring;
    EXPECT_EQ(ring.drain([](const PerfRecord&) { FAIL(); }), 0u);
}

}    // namespace
}    // namespace pghot
