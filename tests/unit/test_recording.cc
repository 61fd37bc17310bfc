// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "runtime/sources/recording.h"
#include "runtime/sources/replay.h"
#include "tests/unit/test_policy_story.h"

namespace pghot::test {
namespace {

using Bytes = std::vector<std::byte>;

bool append(void* self, std::span<const std::byte> bytes) {
    auto& file = *static_cast<Bytes*>(self);
    file.insert(file.end(), bytes.begin(), bytes.end());
    return true;
}

struct Recorder {
    explicit Recorder(size_t buffer_bytes = 4096) : buffer(buffer_bytes), writer(buffer, {append, &file}) {}
    const Bytes& finish() {
        writer.flush();
        return file;
    }
    Bytes file;
    Bytes buffer;
    RecordingWriter writer;
};

Sample sample_at(uint64_t ms, uintptr_t address = 0x7f0000001000) {
    return {.address = address, .time = TimeNs{ms * kNsPerMs}, .tid = 5, .cpu = 1, .node = NodeId{1}};
}

std::vector<Sample> replay(const Bytes& file, size_t order_samples = 64) {
    std::vector<Sample> order(order_samples);
    std::vector<Sample> samples;
    ReplaySource source(file, order);
    EXPECT_TRUE(source.start(source.start_of_recording()).ok());
    const auto keep = [&](const Sample& sample) { samples.push_back(sample); };
    source.drain(TimeNs{~0ull}, keep);
    EXPECT_TRUE(source.finished());
    return samples;
}

TEST(Recording, EveryKindOfRecordReadsBackAsWritten) {
    const Topology machine = published_machine();
    const Sample sample{.address = 0x7fffdeadb123,
                        .time = TimeNs{123456789},
                        .tid = 4711,
                        .cpu = 300,
                        .node = NodeId{1},
                        .served_by = ServedBy::kExtMem,
                        .origin = SampleOrigin::kHintFault,
                        .store = true,
                        .remote = true,
                        .huge = true,
                        .latency_cycles = 1500};
    const ObjectRecord object{
        .address = 0x600000, .bytes = 1 << 20, .time = TimeNs{5}, .heap_generation = 9, .placement = 3, .gone = true};
    const Move move{.address = 0x200000,
                    .pages = 512,
                    .target = NodeId{1},
                    .rule = MoveRule::kChunk,
                    .heap_generation = 77,
                    .planned = TimeNs{99},
                    .kind = MoveKind::kDemote,
                    .from = NodeId{0}};
    const MoveOutcome outcome{.address = 0x201000,
                              .pages = 3,
                              .outcome = PageOutcome::kBusy,
                              .node = NodeId{2},
                              .time = TimeNs{100},
                              .target = NodeId{0},
                              .kind = MoveKind::kRehome};
    Recorder recorder;
    recorder.writer.begin(TimeNs{42});
    recorder.writer.write(machine);
    recorder.writer.write(sample);
    recorder.writer.write(object);
    recorder.writer.write(RecordType::kPhase, {.time = TimeNs{6}, .value = 8, .name = "solve"});
    recorder.writer.write(RecordType::kMark, {.time = TimeNs{7}, .value = 9, .name = ""});
    recorder.writer.write(move);
    recorder.writer.write(outcome);
    EXPECT_EQ(recorder.writer.records(), 7u);

    RecordingReader reader(recorder.finish());
    EXPECT_EQ(reader.start(), TimeNs{42});
    RecordView view;
    Topology machine_again;
    ASSERT_TRUE(reader.next(view) && decode(view, machine_again));
    EXPECT_EQ(machine_again.node_count, 3);
    EXPECT_EQ(machine_again.cpu_count, 4);
    EXPECT_EQ(machine_again.distance, machine.distance);
    EXPECT_EQ(machine_again.node_of_cpu, machine.node_of_cpu);
    EXPECT_TRUE(machine_again.is_lower(NodeId{2}) && machine_again.is_top(NodeId{1}));
    Sample sample_again;
    ASSERT_TRUE(reader.next(view) && decode(view, sample_again));
    EXPECT_EQ(sample_again.address, sample.address);
    EXPECT_EQ(sample_again.time, sample.time);
    EXPECT_EQ(sample_again.tid, sample.tid);
    EXPECT_EQ(sample_again.cpu, sample.cpu);
    EXPECT_EQ(sample_again.node, sample.node);
    EXPECT_EQ(sample_again.served_by, sample.served_by);
    EXPECT_EQ(sample_again.origin, sample.origin);
    EXPECT_EQ(sample_again.latency_cycles, sample.latency_cycles);
    EXPECT_TRUE(sample_again.store && sample_again.huge && sample_again.remote);
    ObjectRecord object_again;
    ASSERT_TRUE(reader.next(view) && decode(view, object_again));
    EXPECT_EQ(object_again.address, object.address);
    EXPECT_EQ(object_again.bytes, object.bytes);
    EXPECT_EQ(object_again.heap_generation, 9u);
    EXPECT_EQ(object_again.placement, 3);
    EXPECT_TRUE(object_again.gone);
    NamedMoment moment;
    ASSERT_TRUE(reader.next(view) && decode(view, moment));
    EXPECT_EQ(view.type, static_cast<uint16_t>(RecordType::kPhase));
    EXPECT_EQ(moment.name, "solve");
    EXPECT_EQ(moment.value, 8u);
    ASSERT_TRUE(reader.next(view) && decode(view, moment));
    EXPECT_EQ(moment.name, "");
    Move move_again;
    ASSERT_TRUE(reader.next(view) && decode(view, move_again));
    EXPECT_EQ(move_again.address, move.address);
    EXPECT_EQ(move_again.pages, move.pages);
    EXPECT_EQ(move_again.target, move.target);
    EXPECT_EQ(move_again.rule, move.rule);
    EXPECT_EQ(move_again.heap_generation, move.heap_generation);
    EXPECT_EQ(move_again.planned, move.planned);
    EXPECT_EQ(move_again.kind, MoveKind::kDemote);
    EXPECT_EQ(move_again.from, NodeId{0});
    MoveOutcome outcome_again;
    ASSERT_TRUE(reader.next(view) && decode(view, outcome_again));
    EXPECT_EQ(outcome_again.address, outcome.address);
    EXPECT_EQ(outcome_again.pages, 3u);
    EXPECT_EQ(outcome_again.outcome, PageOutcome::kBusy);
    EXPECT_EQ(outcome_again.node, NodeId{2});
    EXPECT_EQ(outcome_again.target, NodeId{0});
    EXPECT_EQ(outcome_again.time, TimeNs{100});
    EXPECT_EQ(outcome_again.kind, MoveKind::kRehome);
    EXPECT_FALSE(reader.next(view));
    EXPECT_EQ(reader.state(), RecordingState::kEnd);
}

TEST(Recording, TheBufferSizeMakesNoDifference) {
    Bytes expected;
    for (size_t buffer : {size_t{65536}, size_t{1}, size_t{7}, size_t{40}, size_t{41}}) {
        Recorder recorder(buffer);
        recorder.writer.begin(TimeNs{1});
        recorder.writer.write(published_machine());
        for (uint64_t i = 0; i < 100; ++i) recorder.writer.write(sample_at(i));
        if (expected.empty()) expected = recorder.finish();
        EXPECT_EQ(recorder.finish(), expected) << buffer;
    }
}

TEST(Recording, TheLargestMachineFits) {
    Topology machine;
    machine.node_count = kMaxNodes;
    machine.cpu_count = kMaxCpus;
    for (unsigned i = 0; i < kMaxCpus; ++i) machine.node_of_cpu[i] = static_cast<int16_t>(i % kMaxNodes);
    machine.distance[63][63] = 17;
    Recorder recorder(100);
    recorder.writer.begin(TimeNs{1});
    recorder.writer.write(machine);
    RecordingReader reader(recorder.finish());
    RecordView view;
    Topology again;
    ASSERT_TRUE(reader.next(view) && decode(view, again));
    EXPECT_EQ(again.node_of_cpu, machine.node_of_cpu);
    EXPECT_EQ(again.distance[63][63], 17);
}

TEST(Recording, ASinkThatFailsEndsTheRecordingAndCountsTheRest) {
    struct Disk {
        Bytes file;
        size_t room;
    } disk{{}, 300};
    const auto write = [](void* self, std::span<const std::byte> bytes) {
        auto& to = *static_cast<Disk*>(self);
        if (to.room < bytes.size()) return false;
        to.room -= bytes.size();
        return append(&to.file, bytes);
    };
    Bytes buffer(100);
    RecordingWriter writer(buffer, {write, &disk});
    writer.begin(TimeNs{1});
    for (uint64_t i = 0; i < 50; ++i) writer.write(sample_at(i));
    writer.flush();
    EXPECT_TRUE(writer.failed());
    EXPECT_GT(writer.lost(), 0u);
    EXPECT_EQ(writer.records() + writer.lost(), 50u);
    EXPECT_EQ(replay(disk.file).size(), (300 - kRecordingHeadBytes) / 40);
}

TEST(Recording, UnknownTypesAndLongerPayloadsAreSkipped) {
    Recorder recorder;
    recorder.writer.begin(TimeNs{1});
    recorder.writer.write(sample_at(1));
    const Bytes one = recorder.finish();
    Bytes file(one);
    const auto add_record = [&](uint16_t type, uint32_t bytes, std::span<const std::byte> payload) {
        const uint16_t zero = 0;
        append(&file, std::as_bytes(std::span(&type, 1)));
        append(&file, std::as_bytes(std::span(&zero, 1)));
        append(&file, std::as_bytes(std::span(&bytes, 1)));
        append(&file, payload);
        file.resize(file.size() + bytes - payload.size());
    };
    add_record(4000, 13, {});
    add_record(static_cast<uint16_t>(RecordType::kSample), 50,
               std::span<const std::byte>(one).subspan(kRecordingHeadBytes + kRecordHeadBytes));
    EXPECT_EQ(replay(file).size(), 2u);
}

TEST(Recording, ALongNameIsCut) {
    Recorder recorder;
    recorder.writer.begin(TimeNs{1});
    const std::string name(1000, 'x');
    recorder.writer.write(RecordType::kMark, {.time = TimeNs{7}, .value = 0, .name = name});
    RecordingReader reader(recorder.finish());
    RecordView view;
    NamedMoment moment;
    ASSERT_TRUE(reader.next(view) && decode(view, moment));
    EXPECT_EQ(moment.name, name.substr(0, kRecordTextBytes));
}

TEST(Recording, ForeignFilesAreRefusedWithTheReason) {
    Recorder recorder;
    recorder.writer.begin(TimeNs{1});
    const Bytes good = recorder.finish();
    const auto state_of = [](Bytes file) { return RecordingReader(file).state(); };
    EXPECT_EQ(state_of(good), RecordingState::kGood);
    EXPECT_EQ(state_of({}), RecordingState::kNotARecording);
    EXPECT_EQ(state_of(Bytes(good.begin(), good.end() - 1)), RecordingState::kNotARecording);
    Bytes other = good;
    other[0] = std::byte{'P'};
    EXPECT_EQ(state_of(other), RecordingState::kNotARecording);
    other = good;
    other[8] = std::byte{1};
    EXPECT_EQ(state_of(other), RecordingState::kGood) << "version 1 differs in what it left zero";
    for (uint8_t version : {0, 3}) {
        other[8] = std::byte{version};
        EXPECT_EQ(state_of(other), RecordingState::kOtherVersion);
    }
    other = good;
    std::swap(other[12], other[15]);
    std::swap(other[13], other[14]);
    EXPECT_EQ(state_of(other), RecordingState::kOtherByteOrder);
    std::vector<Sample> order(4);
    ReplaySource source(other, order);
    EXPECT_EQ(source.start(TimeNs{0}).error, EINVAL);
}

TEST(Recording, CutAnywhereGivesTheWholeRecordsBeforeTheCut) {
    Recorder recorder;
    recorder.writer.begin(TimeNs{1});
    for (uint64_t i = 0; i < 5; ++i) recorder.writer.write(sample_at(i));
    const Bytes whole = recorder.finish();
    for (size_t size = kRecordingHeadBytes; size < whole.size(); ++size) {
        const Bytes cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
        RecordingReader reader(cut);
        RecordView view;
        size_t records = 0;
        while (reader.next(view)) ++records;
        EXPECT_EQ(records, (size - kRecordingHeadBytes) / 40);
        const bool between = (size - kRecordingHeadBytes) % 40 == 0;
        EXPECT_EQ(reader.state(), between ? RecordingState::kEnd : RecordingState::kTruncated);
    }
}

// The bytes that version 1 left zero: a move of it is a promotion from anywhere.
TEST(Recording, AMoveOfVersionOneIsAPromotion) {
    Recorder recorder;
    recorder.writer.begin(TimeNs{1});
    recorder.writer.write(Move{.address = 0x200000, .pages = 1, .target = NodeId{1}});
    Bytes file = recorder.finish();
    file[8] = std::byte{1};
    for (size_t i = file.size() - 7; i < file.size(); ++i) EXPECT_EQ(file[i], std::byte{0}) << i;
    RecordingReader reader(file);
    RecordView view;
    Move move;
    ASSERT_TRUE(reader.next(view) && decode(view, move));
    EXPECT_EQ(move.kind, MoveKind::kPromote);
    EXPECT_EQ(move.from, kNoNode);
}

TEST(Recording, AnOutcomeOfSeveralChunksReadsBack) {
    Recorder recorder;
    recorder.writer.begin(TimeNs{1});
    recorder.writer.write(MoveOutcome{.address = 0x200000, .pages = kMostOutcomePages});
    RecordingReader reader(recorder.finish());
    RecordView view;
    MoveOutcome outcome;
    ASSERT_TRUE(reader.next(view) && decode(view, outcome));
    EXPECT_EQ(outcome.pages, kMostOutcomePages);
}

TEST(Recording, ValuesThatDoNotExistAreRefused) {
    const auto decodes = [](const Sample& sample) {
        Recorder recorder;
        recorder.writer.begin(TimeNs{1});
        recorder.writer.write(sample);
        RecordingReader reader(recorder.finish());
        RecordView view;
        Sample again;
        return reader.next(view) && decode(view, again);
    };
    Sample sample = sample_at(1);
    EXPECT_TRUE(decodes(sample));
    sample.node = NodeId{64};
    EXPECT_FALSE(decodes(sample));
    sample = sample_at(1);
    sample.served_by = static_cast<ServedBy>(4);
    EXPECT_FALSE(decodes(sample));
    sample = sample_at(1);
    sample.origin = static_cast<SampleOrigin>(2);
    EXPECT_FALSE(decodes(sample));
}

// ---- replay

TEST(Replay, SamplesComeInTheOrderOfTimeThoughRingsWereDrainedInTurn) {
    Recorder recorder;
    recorder.writer.begin(TimeNs{0});
    for (uint64_t drain = 0; drain < 10; ++drain)
        for (uint64_t ring = 0; ring < 4; ++ring)
            for (uint64_t i = 0; i < 5; ++i) recorder.writer.write(sample_at(drain * 100 + i * 20 + ring));
    const auto samples = replay(recorder.finish());
    ASSERT_EQ(samples.size(), 200u);
    for (size_t i = 1; i < samples.size(); ++i) EXPECT_LT(samples[i - 1].time, samples[i].time);
}

TEST(Replay, ASampleTooLateForTheBufferTakesTheTimeOfTheNewest) {
    Recorder recorder;
    recorder.writer.begin(TimeNs{0});
    for (uint64_t i = 10; i < 20; ++i) recorder.writer.write(sample_at(i));
    recorder.writer.write(sample_at(1));
    std::vector<Sample> order(4);
    ReplaySource source(recorder.finish(), order);
    ASSERT_TRUE(source.start(TimeNs{0}).ok());
    std::vector<TimeNs> times;
    const auto keep = [&](const Sample& sample) { times.push_back(sample.time); };
    source.drain(TimeNs{kNsPerSecond}, keep);
    EXPECT_EQ(times.size(), 11u);
    EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
    EXPECT_EQ(source.out_of_order(), 1u);
}

TEST(Replay, SamplesAreDueOnTheClockOfTheStart) {
    Recorder recorder;
    recorder.writer.begin(TimeNs{1000 * kNsPerMs});
    recorder.writer.write(sample_at(900));    // was in a ring before
    recorder.writer.write(sample_at(1500));
    std::vector<Sample> order(8);
    ReplaySource source(recorder.finish(), order);
    ASSERT_TRUE(source.start(TimeNs{10 * kNsPerMs}).ok());
    std::vector<TimeNs> times;
    const auto keep = [&](const Sample& sample) { times.push_back(sample.time); };
    source.drain(TimeNs{509 * kNsPerMs}, keep);
    EXPECT_EQ(times, std::vector{TimeNs{10 * kNsPerMs}});
    EXPECT_FALSE(source.finished());
    source.drain(TimeNs{510 * kNsPerMs}, keep);
    EXPECT_EQ(times.back(), TimeNs{510 * kNsPerMs});
    source.drain(TimeNs{511 * kNsPerMs}, keep);
    EXPECT_TRUE(source.finished());
}

}    // namespace
}    // namespace pghot::test
