// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "runtime/sources/sample_decoder.h"

namespace pghot {
namespace {

struct Vector {
    const char* what;
    uint64_t data_src;
    ServedBy expected;
};

// Values of perf_mem_data_src as the ibs_op driver builds them, for Linux 6.6 and later unless said.
constexpr Vector kVectors[] = {
    {"load, local DRAM", 0x1a29081042, ServedBy::kDram},
    {"load, remote DRAM", 0x103a29082042, ServedBy::kDram},
    {"load, CXL", 0x1229080002, ServedBy::kExtMem},
    {"load, CXL of another node", 0x103229080002, ServedBy::kExtMem},
    {"load, L1", 0x229080142, ServedBy::kCache},
    {"load, L2", 0x429080442, ServedBy::kCache},
    {"load, L3", 0x629080842, ServedBy::kCache},
    {"load, near CCX", 0x83629088042, ServedBy::kCache},
    {"load, far CCX", 0x103629090042, ServedBy::kCache},
    {"load, line fill buffer", 0x1829080242, ServedBy::kNoLevel},
    {"load, no level", 0x1e29080022, ServedBy::kNoLevel},
    {"store, no level", 0x1e29080024, ServedBy::kNoLevel},
    {"load, local DRAM, 6.1 to 6.5", 0x29081042, ServedBy::kDram},
    {"load, CXL, 6.1 to 6.5", 0x1229080002, ServedBy::kExtMem},
    {"no memory operation, 6.1", 0x5080021, ServedBy::kNoLevel},
    {"no memory operation, 6.6", 0x1e05080021, ServedBy::kNoLevel},
};

TEST(Classify, EveryEncodingOfTheDriver) {
    for (const Vector& vector : kVectors) EXPECT_EQ(classify(vector.data_src), vector.expected) << vector.what;
}

TEST(IsRemote, IsToldByTheBitAndOnOlderKernelsByTheLevel) {
    EXPECT_FALSE(is_remote(0x1a29081042)) << "local DRAM";
    EXPECT_TRUE(is_remote(0x103a29082042)) << "remote DRAM";
    EXPECT_FALSE(is_remote(0x29081042)) << "local DRAM, 6.1 to 6.5";
    EXPECT_TRUE(is_remote(0x29082042)) << "remote DRAM, 6.1 to 6.5";
    EXPECT_FALSE(is_remote(0x1e29080024)) << "a store";
}

struct Fields {
    uint64_t identifier = 7, time = 5'000'000'000, address = 0x7f1234567abc;
    uint32_t pid = 10, tid = 11, cpu = 1, latency = 900;
    uint64_t period = 10000, data_src = 0x1229080002, page_bytes = 4096;
};

std::array<std::byte, 72> body_of(const Fields& fields) {
    std::array<std::byte, 72> body{};
    size_t at = 0;
    const auto put = [&](const auto& value) {
        std::memcpy(body.data() + at, &value, sizeof value);
        at += sizeof value;
    };
    put(fields.identifier);
    put(fields.pid);
    put(fields.tid);
    put(fields.time);
    put(fields.address);
    put(fields.cpu);
    put(uint32_t{0});
    put(fields.period);
    put(fields.latency);
    put(uint32_t{0});
    put(fields.data_src);
    put(fields.page_bytes);
    EXPECT_EQ(at, body.size());
    return body;
}

TEST(DecodeSample, ReadsEveryField) {
    const auto body = body_of({});
    RawSample raw;
    ASSERT_TRUE(decode_sample({PERF_RECORD_SAMPLE, 0, body}, raw));
    EXPECT_EQ(raw.id, 7u);
    EXPECT_EQ(raw.pid, 10u);
    EXPECT_EQ(raw.tid, 11u);
    EXPECT_EQ(raw.time_ns, 5'000'000'000u);
    EXPECT_EQ(raw.address, 0x7f1234567abcu);
    EXPECT_EQ(raw.cpu, 1u);
    EXPECT_EQ(raw.period, 10000u);
    EXPECT_EQ(raw.latency_cycles, 900u);
    EXPECT_EQ(raw.data_src, 0x1229080002u);
    EXPECT_EQ(raw.page_bytes, 4096u);
}

TEST(DecodeSample, AShortRecordIsRefused) {
    const auto body = body_of({});
    RawSample raw;
    EXPECT_FALSE(decode_sample({PERF_RECORD_SAMPLE, 0, std::span(body).first(71)}, raw));
    EXPECT_FALSE(decode_sample({PERF_RECORD_SAMPLE, 0, {}}, raw));
}

TEST(DecodeSample, ALongerRecordOfANewerKernelIsFine) {
    std::array<std::byte, 88> longer{};
    const auto body = body_of({});
    std::memcpy(longer.data(), body.data(), body.size());
    RawSample raw;
    ASSERT_TRUE(decode_sample({PERF_RECORD_SAMPLE, 0, longer}, raw));
    EXPECT_EQ(raw.page_bytes, 4096u);
}

TEST(UserAddress, IbsHasNoneAtZeroAndKernelHalfIsNotOurs) {
    EXPECT_FALSE(is_user_address(0));
    EXPECT_FALSE(is_user_address(4095));
    EXPECT_TRUE(is_user_address(4096));
    EXPECT_TRUE(is_user_address(0x7fffffffffff));
    EXPECT_FALSE(is_user_address(0xffff888000000000));
    EXPECT_FALSE(is_user_address(1ull << 56));
}

TEST(ToSample, TheNodeIsThatOfTheCpu) {
    Topology topology;
    topology.node_of_cpu.fill(-1);
    topology.node_of_cpu[1] = 1;
    RawSample raw;
    raw.cpu = 1;
    raw.data_src = 0x1e29080024;
    raw.page_bytes = kChunkBytes;
    const Sample sample = to_sample(raw, topology, SampleOrigin::kIbs);
    EXPECT_EQ(sample.node, NodeId{1});
    EXPECT_TRUE(sample.store);
    EXPECT_TRUE(sample.huge);
    EXPECT_FALSE(sample.remote);
    raw.data_src = 0x103a29082042;
    EXPECT_TRUE(to_sample(raw, topology, SampleOrigin::kIbs).remote);
    raw.data_src = 0x103229080002;
    EXPECT_FALSE(to_sample(raw, topology, SampleOrigin::kIbs).remote) << "the expander's node is nobody's own";
    raw.cpu = 3;
    EXPECT_FALSE(to_sample(raw, topology, SampleOrigin::kIbs).node.valid());
}

}    // namespace
}    // namespace pghot
