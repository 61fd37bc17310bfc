// SPDX-License-Identifier: Apache-2.0
// The two threads without tiers: the mover on memory of the test, the whole engine on a recording. Run under
// ThreadSanitizer too.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/engine/engine.h"
#include "runtime/engine/mover.h"
#include "runtime/engine/sampler.h"
#include "runtime/report/identities.h"
#include "runtime/sources/recording.h"

namespace pghot {
namespace {

bool move_pages_works() {
    int on_stack = 0;
    void* page = &on_stack;
    int status = 0;
    return sys::move_pages({&page, 1}, nullptr, &status) == 0;
}

// Node 0, where this test's memory is, as the top tier; node 1 as an invented lower tier.
Topology invented_machine() {
    Topology topology;
    topology.node_count = 2;
    topology.nodes[0] = {.online_memory = true, .has_cpus = true, .allowed = true, .total_bytes = 1ull << 34};
    topology.nodes[1] = {.online_memory = true, .allowed = true, .lower_tier = true};
    topology.distance[0] = {10, 50};
    return topology;
}

class MoverThread : public testing::Test {
protected:
    void SetUp() override {
        if (!move_pages_works()) GTEST_SKIP() << "move_pages is blocked here";
        shared->topology = invented_machine();
        shared->free_bytes[0].store(1ull << 33);
        shared->free_round.store(1);
        void* at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memory = static_cast<char*>(at);
        for (size_t i = 0; i < kBytes; i += kPageBytes) memory[i] = 1;
    }
    void TearDown() override {
        if (memory != nullptr) munmap(memory, kBytes);
    }
    void start() {
        thread = std::thread([this] { std::make_unique<MoverLoop>(*shared)->run(); });
    }
    void stop() {
        shared->stop.raise();
        shared->plans_waiting.raise();
        thread.join();
    }
    Move whole_chunk(size_t index) const {
        return {reinterpret_cast<uintptr_t>(memory) + index * kChunkBytes,
                kPagesPerChunk,
                NodeId{0},
                MoveRule::kChunk,
                0,
                {}};
    }
    uint64_t counter(Counter which) { return shared->statistics->counters.get(which); }

    static constexpr size_t kChunks = 8;
    static constexpr size_t kBytes = kChunks * kChunkBytes;
    std::unique_ptr<EngineShared> shared = std::make_unique<EngineShared>();
    std::thread thread;
    char* memory = nullptr;
};

TEST_F(MoverThread, EveryPlannedPageComesBackWithItsOutcome) {
    start();
    uint32_t outcomes = 0;
    constexpr uint32_t kRounds = 50;
    for (uint32_t round = 0; round < kRounds; ++round) {
        for (size_t i = 0; i < kChunks; ++i) ASSERT_TRUE(shared->plans.push(whole_chunk(i)));
        shared->plans_waiting.raise();
        while (outcomes < (round + 1) * kChunks * kPagesPerChunk) {
            MoveOutcome outcome;
            if (!shared->outcomes.pop(outcome)) {
                std::this_thread::yield();
                continue;
            }
            EXPECT_EQ(outcome.outcome, PageOutcome::kAtTarget) << "this machine has them on node 0";
            outcomes += outcome.pages;
        }
    }
    stop();
    EXPECT_EQ(counter(Counter::pages_at_target), kRounds * kChunks * kPagesPerChunk);
    EXPECT_EQ(counter(Counter::move_calls), 0u);
}

TEST_F(MoverThread, WhatIsPlannedWhenTheEngineStopsIsExpired) {
    shared->stop.raise();
    for (size_t i = 0; i < kChunks; ++i) ASSERT_TRUE(shared->plans.push(whole_chunk(i)));
    start();
    stop();
    EXPECT_EQ(counter(Counter::pages_expired), kChunks * kPagesPerChunk);
    EXPECT_EQ(shared->plans.size(), 0u);
}

// A recording of samples on an invented address range.
class EngineOnARecording : public testing::Test {
protected:
    void SetUp() override {
        const int fd = mkstemp(recording.data());
        ASSERT_GE(fd, 0);
        close(fd);
        const std::unique_ptr<FILE, int (*)(FILE*)> file(fopen(recording.c_str(), "wb"), fclose);
        std::vector<std::byte> buffer(4096);
        const auto write = [](void* self, std::span<const std::byte> bytes) {
            return fwrite(bytes.data(), 1, bytes.size(), static_cast<FILE*>(self)) == bytes.size();
        };
        RecordingWriter writer(buffer, {write, file.get()});
        writer.begin(TimeNs{0});
        for (uint32_t i = 0; i < kSamples; ++i)
            writer.write(
                Sample{.address = 0x500000000000 + i * 40960ull, .time = TimeNs{i * 100000ull}, .node = NodeId{0}});
        writer.flush();
        settings.tunables.lower_nodes.insert(0);    // whatever this machine is, there is a lower tier
        settings.tunables.sources.order[0] = SourceKind::kReplay;
        settings.tunables.sources.replay_file.assign(recording);
    }
    void TearDown() override { unlink(recording.c_str()); }
    static EngineState state(const EngineShared& engine) {
        return static_cast<EngineState>(engine.statistics->state.load(std::memory_order_acquire));
    }
    static bool wait_until_ready(const EngineShared& engine) {
        const TimeNs limit = sys::now() + 10 * kNsPerSecond;
        while (!engine.ready.raised() && sys::now() < limit) engine.ready.wait(0, kNsPerMs);
        return engine.ready.raised();
    }

    static constexpr uint32_t kSamples = 1000;
    std::string recording = "/tmp/pghot_recording_XXXXXX";
    EngineSettings settings;
};

TEST_F(EngineOnARecording, ReadsItAllAndStops) {
    EngineShared* engine = start_engine(settings);
    ASSERT_NE(engine, nullptr);
    ASSERT_TRUE(wait_until_ready(*engine));
    if (state(*engine) == EngineState::kFailed) GTEST_SKIP() << engine->statistics->source_reason;
    ASSERT_EQ(state(*engine), EngineState::kObserving) << engine->statistics->source_reason;
    const Counters& counters = engine->statistics->counters;
    const TimeNs limit = sys::now() + 20 * kNsPerSecond;
    while (counters.get(Counter::hwhint_total_events) < kSamples && sys::now() < limit) usleep(1000);
    ASSERT_TRUE(stop_engine(*engine, 10 * kNsPerSecond));
    EXPECT_EQ(state(*engine), EngineState::kStopped);
    EXPECT_EQ(counters.get(Counter::hwhint_total_events), kSamples);
    EXPECT_EQ(counters.get(Counter::pghot_recorded_accesses), kSamples);
    const CounterValues values = values_of(counters);
    for (const Identity& identity : kIdentities) EXPECT_TRUE(identity.holds(values)) << identity.name;
}

TEST_F(EngineOnARecording, CanBeStoppedBeforeItIsReady) {
    for (int i = 0; i < 20; ++i) {
        EngineShared* engine = start_engine(settings);
        ASSERT_NE(engine, nullptr);
        EXPECT_TRUE(stop_engine(*engine, 10 * kNsPerSecond));
    }
}

TEST_F(EngineOnARecording, AFileThatIsNoRecordingIsAReasonNotToSample) {
    settings.tunables.sources.replay_file.assign("/etc/hostname");
    EngineShared* engine = start_engine(settings);
    ASSERT_NE(engine, nullptr);
    ASSERT_TRUE(wait_until_ready(*engine));
    if (state(*engine) == EngineState::kFailed) GTEST_SKIP() << engine->statistics->source_reason;
    EXPECT_EQ(state(*engine), EngineState::kNoSource);
    EXPECT_NE(std::string(engine->statistics->source_reason), "");
    EXPECT_TRUE(stop_engine(*engine, 10 * kNsPerSecond));
}

TEST_F(EngineOnARecording, AReportThatCannotBeWrittenIsSaid) {
    settings.report_file.assign("/nonexistent/folder/report.json");
    EngineShared* engine = start_engine(settings);
    ASSERT_NE(engine, nullptr);
    ASSERT_TRUE(wait_until_ready(*engine));
    if (state(*engine) == EngineState::kFailed) GTEST_SKIP() << engine->statistics->source_reason;
    ASSERT_TRUE(stop_engine(*engine, 10 * kNsPerSecond));
    EXPECT_NE(engine->problem.view().find("PGHOT_REPORT: cannot write /nonexistent/folder/report.json: ENOENT"),
              std::string_view::npos)
        << engine->problem.view();
}

// Starts the engine, stops it as an exit of the program would, and answers what it has to say.
std::string problem_of_a_run(const EngineSettings& settings) {
    EngineShared* engine = start_engine(settings);
    if (engine == nullptr) return "not started";
    engine->ready.wait(0, kNsPerSecond);
    if (!stop_engine(*engine, 2 * kNsPerSecond)) return "the exit of the program was held up";
    return std::string(engine->problem.view());
}

testing::AssertionResult begins(const std::string& text, const std::string& start) {
    if (text.starts_with(start)) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "'" << text << "', wanted '" << start << "'";
}

TEST_F(EngineOnARecording, AFifoThatNobodyReadsOrWritesHoldsNothingUp) {
    const std::string fifo = recording + ".fifo";
    ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    EngineSettings reports = settings, records = settings, replays = settings;
    reports.report_file.assign(fifo);
    records.record_file.assign(fifo);
    replays.tunables.sources.replay_file.assign(fifo);
    EXPECT_TRUE(begins(problem_of_a_run(reports), "PGHOT_REPORT: cannot write " + fifo + ": ENXIO"));
    EXPECT_TRUE(begins(problem_of_a_run(records), "PGHOT_RECORD: cannot write " + fifo + ": ENXIO"));
    EXPECT_TRUE(begins(problem_of_a_run(replays), "PGHOT_SOURCES: cannot read " + fifo + ": EINVAL"));
    unlink(fifo.c_str());
}

TEST_F(EngineOnARecording, ARecordingThatEndsEarlyIsSaid) {
    settings.record_file.assign("/dev/full");
    EXPECT_TRUE(begins(problem_of_a_run(settings), "PGHOT_RECORD: cannot write /dev/full: ENOSPC"));
}

TEST_F(EngineOnARecording, MayBeRecordedOver) {
    settings.record_file.assign(recording);
    EngineShared* engine = start_engine(settings);
    ASSERT_NE(engine, nullptr);
    ASSERT_TRUE(wait_until_ready(*engine));
    if (state(*engine) == EngineState::kFailed) GTEST_SKIP() << engine->statistics->source_reason;
    const Counters& counters = engine->statistics->counters;
    const TimeNs limit = sys::now() + 20 * kNsPerSecond;
    while (counters.get(Counter::hwhint_total_events) < kSamples && sys::now() < limit) usleep(1000);
    ASSERT_TRUE(stop_engine(*engine, 10 * kNsPerSecond));
    EXPECT_EQ(counters.get(Counter::hwhint_total_events), kSamples);
}

// The sampler's end, with a mover of the test: `mover_ends` or is still in a call of the kernel. One plan was pushed
// after the mover's last look.
void finish_with_a_plan_left(EngineShared& shared, bool mover_ends) {
    std::thread([&] {
        const auto sampler = std::make_unique<Sampler>(shared);
        ASSERT_EQ(sampler->set_up(), EngineState::kObserving) << shared.statistics->source_reason;
        Counters& counters = shared.statistics->counters;
        counters.add(Counter::pgpromote_candidate, kPagesPerChunk);
        counters.add(Counter::pages_by_chunk_rule, kPagesPerChunk);
        ASSERT_TRUE(shared.plans.push({.pages = kPagesPerChunk, .rule = MoveRule::kChunk}));
        shared.stop.raise();
        if (mover_ends) shared.mover_ended.raise();
        sampler->finish();
    }).join();
}

TEST_F(EngineOnARecording, PlansThatCameAfterTheMoversLastLookAreExpired) {
    const auto shared = std::make_unique<EngineShared>();
    shared->settings = settings;
    finish_with_a_plan_left(*shared, true);
    EXPECT_EQ(state(*shared), EngineState::kStopped);
    EXPECT_EQ(shared->statistics->counters.get(Counter::pages_expired), kPagesPerChunk);
    const CounterValues values = values_of(shared->statistics->counters);
    for (const Identity& identity : kIdentities) EXPECT_TRUE(identity.holds(values)) << identity.name;
}

TEST_F(EngineOnARecording, WithoutTheMoversEndItIsNotStopped) {
    const auto shared = std::make_unique<EngineShared>();
    shared->settings = settings;
    finish_with_a_plan_left(*shared, false);
    EXPECT_EQ(state(*shared), EngineState::kObserving) << "the report would promise identities that do not hold yet";
}

// What a container's profile does: `call` is answered with EPERM from here on.
bool forbid(uint32_t call) {
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{4, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Runs `check` in a process that may not make `call`.
template <typename Check>
void with_forbidden(uint32_t call, Check check) {
    const pid_t child = fork();
    if (child == 0) {
        EXPECT_TRUE(forbid(call));
        if (!testing::Test::HasFailure()) check();
        _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

EngineSettings settings_with_lower_tier() {
    EngineSettings settings;
    settings.tunables.lower_nodes.insert(0);
    return settings;
}

TEST(EngineInAContainer, WithoutMovePagesNothingIsSampledAndTheReasonIsKept) {
    with_forbidden(SYS_move_pages, [] {
        EngineShared* engine = start_engine(settings_with_lower_tier());
        while (!engine->ready.raised()) engine->ready.wait(0, kNsPerMs);
        EXPECT_EQ(static_cast<EngineState>(engine->statistics->state.load()), EngineState::kFailed);
        EXPECT_STREQ(engine->statistics->source_reason, "move_pages is refused here: EPERM");
        EXPECT_TRUE(stop_engine(*engine, 10 * kNsPerSecond));
    });
}

TEST(EngineInAContainer, WithoutATableOfItsOwnItOpensNoFile) {
    with_forbidden(SYS_close_range, [] {
        EngineSettings settings = settings_with_lower_tier();
        const std::string path = "/tmp/pghot_report_" + std::to_string(getpid());
        settings.report_file.assign(path);
        EngineShared* engine = start_engine(settings);
        while (!engine->ready.raised()) engine->ready.wait(0, kNsPerMs);
        EXPECT_TRUE(stop_engine(*engine, 10 * kNsPerSecond));
        EXPECT_NE(access(path.c_str(), F_OK), 0) << "it was opened among the program's descriptors";
        unlink(path.c_str());
        EXPECT_NE(engine->problem.view().find("PGHOT_REPORT: cannot write"), std::string_view::npos);
    });
}

}    // namespace
}    // namespace pghot
