// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "runtime/report/identities.h"
#include "runtime/report/report.h"

namespace pghot {
namespace {

// What a writer wrote, by a sink that accepts everything.
template <typename Body>
std::string written(Body body) {
    std::string text;
    const auto sink = [&](std::span<const char> piece) {
        text.append(piece.data(), piece.size());
        return true;
    };
    JsonWriter json(sink);
    body(json);
    EXPECT_TRUE(json.finish());
    return text;
}

std::string as_json(std::string_view value) {
    return written([&](JsonWriter& json) { json.text({}, value); });
}

TEST(JsonWriter, ObjectsArraysAndValuesAreIndented) {
    const std::string text = written([](JsonWriter& json) {
        json.begin_object();
        json.number("a", 18446744073709551615u);
        json.begin_array("b");
        json.signed_number({}, -1);
        json.boolean({}, true);
        json.end_array();
        json.begin_object("c");
        json.end_object();
        json.end_object();
    });
    EXPECT_EQ(text, "{\n  \"a\": 18446744073709551615,\n  \"b\": [\n    -1,\n    true\n  ],\n  \"c\": {}\n}\n");
}

TEST(JsonWriter, ControlCharactersQuotesAndBackslashesAreEscaped) {
    EXPECT_EQ(as_json(std::string_view("a\"\\\n\0\x7f", 6)), "\"a\\\"\\\\\\u000a\\u0000\\u007f\"\n");
}

TEST(JsonWriter, Utf8StaysAndEverythingElseIsReplaced) {
    EXPECT_EQ(as_json("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x94\xa5"), "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x94\xa5\"\n");
    const std::string replacement = "\xef\xbf\xbd";
    EXPECT_EQ(as_json("\xff"), "\"" + replacement + "\"\n");
    EXPECT_EQ(as_json("\xc3"), "\"" + replacement + "\"\n") << "cut off";
    EXPECT_EQ(as_json("\xc0\xaf"), "\"" + replacement + replacement + "\"\n") << "overlong";
    EXPECT_EQ(as_json("\xed\xa0\x80"), "\"" + replacement + replacement + replacement + "\"\n") << "surrogate";
    EXPECT_EQ(as_json("\xf4\x90\x80\x80").size(), 4 * replacement.size() + 3) << "above U+10FFFF";
}

TEST(JsonWriter, ATextLongerThanTheBufferArrivesWhole) {
    const std::string text(10000, 'x');
    EXPECT_EQ(as_json(text), "\"" + text + "\"\n");
}

TEST(JsonWriter, ARefusingSinkIsNotAskedAgain) {
    int asked = 0;
    const auto sink = [&](std::span<const char>) { return ++asked, false; };
    JsonWriter json(sink);
    json.text({}, std::string(20000, 'x'));
    EXPECT_FALSE(json.finish());
    EXPECT_EQ(asked, 1);
}

TEST(Identities, AllHoldForCountersThatWereNeverTouched) {
    for (const Identity& identity : kIdentities) EXPECT_TRUE(identity.holds(CounterValues{})) << identity.name;
}

TEST(Identities, EachTermCountsInTheEquationsThatNameIt) {
    struct Case {
        Counter counter;
        int broken;    // identities broken when this counter alone is 1
    };
    for (const Case& c : {Case{Counter::hwhint_total_events, 1},
                          Case{Counter::hwhint_useful_events, 2},
                          Case{Counter::hwhint_dropped_events, 1},
                          Case{Counter::hwhint_nolevel_accesses, 1},
                          Case{Counter::pghot_recorded_accesses, 1},
                          Case{Counter::pgpromote_candidate, 2},
                          Case{Counter::pages_by_huge_rule, 1},
                          Case{Counter::pgpromote_success, 1},
                          Case{Counter::pages_at_target, 1},
                          Case{Counter::pages_absent, 1},
                          Case{Counter::pages_stale, 1},
                          Case{Counter::pages_expired, 1},
                          Case{Counter::pgdemote_candidate, 1},
                          Case{Counter::pgdemote_success, 1},
                          Case{Counter::pgdemote_fail, 1},
                          Case{Counter::numa_pages_candidate, 1},
                          Case{Counter::numa_pages_migrated, 1},
                          Case{Counter::numa_pages_fail, 1},
                          Case{Counter::pages_elsewhere, 1},
                          Case{Counter::plans_dropped, 1},
                          Case{Counter::pgpromote_fail, 2},
                          Case{Counter::pgpromote_fail_other, 1},
                          Case{Counter::lost_samples, 0}}) {
        CounterValues values;
        values[c.counter] = 1;
        int broken = 0;
        for (const Identity& identity : kIdentities) broken += identity.holds(values) ? 0 : 1;
        EXPECT_EQ(broken, c.broken) << kCounterInfo[static_cast<unsigned>(c.counter)].name;
    }
}

// A machine with two DRAM nodes of two CPUs each and one CXL node.
Topology three_nodes() {
    Topology topology;
    topology.node_of_cpu.fill(-1);
    for (int cpu = 0; cpu < 4; ++cpu) topology.node_of_cpu[static_cast<size_t>(cpu)] = static_cast<int16_t>(cpu / 2);
    topology.cpu_count = 4;
    topology.node_count = 3;
    for (unsigned i = 0; i < 3; ++i)
        topology.nodes[i] = Node{.online_memory = true, .has_cpus = i < 2, .allowed = true};
    topology.nodes[2].lower_tier = true;
    topology.nodes[2].total_bytes = 2048 * kMiB;
    topology.evidence = TierEvidence::kMemoryTier;
    return topology;
}

// A report of `statistics` on that machine with one setting.
std::string report_of(const Statistics& statistics, const RefusedCalls& calls = RefusedCalls()) {
    std::string text;
    const Topology topology = three_nodes();
    const auto tunables = [](FunctionRef<void(const ReportedTunable&)> visit) {
        visit({"PGHOT_FREQ_WINDOW", "3000", "ms", true});
    };
    const ReportInput input{statistics, topology, "1.2.3", "on", tunables, calls, [](int error) {
                                return std::string_view(error == EPERM ? "EPERM" : "E?");
                            }};
    EXPECT_TRUE(write_report(input, [&](std::span<const char> piece) {
        text.append(piece.data(), piece.size());
        return true;
    }));
    return text;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(Report, NamesTheProcessTheSourceAndItsReason) {
    const auto statistics = std::make_unique<Statistics>();
    statistics->pid = 77;
    std::strcpy(statistics->command, "a \"b\"");
    std::strcpy(statistics->source_reason, "ibs_op opened");
    statistics->source = SourceKind::kIbs;
    statistics->state = static_cast<uint32_t>(EngineState::kStopped);
    const std::string text = report_of(*statistics);
    for (const char* part :
         {"\"version\": \"1.2.3\"", "\"pid\": 77", "\"command\": \"a \\\"b\\\"\"", "\"mode\": \"on\"",
          "\"state\": \"stopped\"", "\"name\": \"ibs\"", "\"reason\": \"ibs_op opened\""})
        EXPECT_TRUE(has(text, part)) << part << " in\n" << text;
}

TEST(Report, NamesWhoElseMovesPages) {
    const auto statistics = std::make_unique<Statistics>();
    EXPECT_TRUE(has(report_of(*statistics), "\"damon_runs\": false,\n    \"numa_balancing\": -1\n"));
    statistics->numa_balancing = 2;
    statistics->damon_runs = true;
    EXPECT_TRUE(has(report_of(*statistics), "\"damon_runs\": true,\n    \"numa_balancing\": 2\n"));
}

TEST(Report, GivesEverySettingNodeAndCounter) {
    const auto statistics = std::make_unique<Statistics>();
    statistics->counters.add(Counter::pgpromote_success, 32768);
    const std::string text = report_of(*statistics);
    for (const char* part : {"\"value\": \"3000\"", "\"unit\": \"ms\"", "\"set\": true", "\"tier\": \"lower\"",
                             "\"cpus\": \"2-3\"", "\"cpus\": \"\"", "\"told_by\": \"memory tier\"",
                             "\"total_bytes\": 2147483648", "\"pgpromote_success\": 32768"})
        EXPECT_TRUE(has(text, part)) << part << " in\n" << text;
    for (const CounterInfo& counter : kCounterInfo) EXPECT_TRUE(has(text, "\"" + std::string(counter.name) + "\": "));
}

TEST(Report, EveryRefusedCallIsNamedWithItsErrorAndHowOften) {
    const auto statistics = std::make_unique<Statistics>();
    EXPECT_TRUE(has(report_of(*statistics), "\"refused_calls\": []"));
    RefusedCalls calls;
    calls.note(KernelCall::madvise, EPERM);
    calls.note(KernelCall::madvise, EPERM);
    EXPECT_TRUE(has(report_of(*statistics, calls),
                    "\"call\": \"madvise\",\n      \"error\": \"EPERM\",\n      \"count\": 2\n"));
}

TEST(RefusedCalls, CallsAndErrorsAreCountedApartAndWhatIsTooMuchIsLeftOut) {
    RefusedCalls calls;
    for (int error = 1; error <= 1000; ++error) calls.note(KernelCall::clock_gettime, error);
    calls.note(KernelCall::clock_gettime, 1);
    int listed = 0;
    calls.for_each([&](KernelCall call, int error, uint64_t count) {
        EXPECT_EQ(call, KernelCall::clock_gettime);
        EXPECT_EQ(error, ++listed);
        EXPECT_EQ(count, error == 1 ? 2u : 1u);
    });
    EXPECT_EQ(listed, 64);
    calls.clear();
    calls.for_each([&](KernelCall, int, uint64_t) { FAIL() << "listed after it was cleared"; });
}

TEST(RefusedCalls, NothingIsLostWhenThreadsNoteTheSameForTheFirstTime) {
    for (int round = 0; round < 200; ++round) {
        RefusedCalls calls;
        std::atomic<int> waiting{2};
        const auto note_all = [&] {
            --waiting;
            while (waiting > 0) {
            }
            for (int error = 1; error <= 20; ++error) calls.note(KernelCall::read, error);
        };
        std::thread other(note_all);
        note_all();
        other.join();
        int listed = 0;
        calls.for_each([&](KernelCall, int, uint64_t count) {
            ++listed;
            EXPECT_EQ(count, 2u);
        });
        EXPECT_EQ(listed, 20);
    }
}

TEST(Report, ABrokenIdentityIsSaid) {
    const auto statistics = std::make_unique<Statistics>();
    statistics->state = static_cast<uint32_t>(EngineState::kStopped);
    EXPECT_FALSE(has(report_of(*statistics), "\": false\n"));
    statistics->counters.add(Counter::pgpromote_fail);
    EXPECT_TRUE(has(report_of(*statistics), "\"pgpromote_fail = busy + nomem + access + fault + other\": false"));
}

TEST(Report, TheIdentityOverBothThreadsWaitsForTheirEnd) {
    const auto statistics = std::make_unique<Statistics>();
    statistics->state = static_cast<uint32_t>(EngineState::kRunning);
    EXPECT_FALSE(has(report_of(*statistics), "moved + at target"));
    statistics->state = static_cast<uint32_t>(EngineState::kStopped);
    EXPECT_TRUE(has(report_of(*statistics), "moved + at target"));
}

TEST(Report, SecondsAreRelativeToTheStartAndOnlyTheLastOnesAreKept) {
    const auto statistics = std::make_unique<Statistics>();
    statistics->started_ns = 5 * kNsPerSecond;
    for (uint64_t i = 0; i < kSecondRows + 1; ++i)
        statistics->second[i % kSecondRows] = SecondRow{.time_ns = (6 + i) * kNsPerSecond, .samples = i};
    statistics->rows = kSecondRows + 1;
    const std::string text = report_of(*statistics);
    EXPECT_FALSE(has(text, "\"ms\": 1000,")) << "overwritten by the newest";
    EXPECT_TRUE(has(text, "\"ms\": 2000,"));
    EXPECT_TRUE(has(text, "\"ms\": 513000,"));
}

TEST(Report, TheJobAndThePeriodAreThere) {
    const auto statistics = std::make_unique<Statistics>();
    std::strcpy(statistics->job, "pmix.7");
    statistics->ranks = 4;
    statistics->ranks_seen = 5;
    statistics->period = 40000;
    statistics->second[0] = SecondRow{.period = 20000};
    statistics->rows = 1;
    const std::string text = report_of(*statistics);
    for (const char* part :
         {"\"name\": \"pmix.7\"", "\"ranks\": 4", "\"ranks_seen\": 5", "\"period\": 40000", "\"period\": 20000"})
        EXPECT_TRUE(has(text, part)) << part << " in\n" << text;
}

TEST(Report, AnUnterminatedTextEndsWithItsArray) {
    const auto statistics = std::make_unique<Statistics>();
    std::memset(statistics->command, 'c', sizeof statistics->command);
    EXPECT_TRUE(has(report_of(*statistics), "\"command\": \"" + std::string(sizeof statistics->command, 'c') + "\""));
}

}    // namespace
}    // namespace pghot
