// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "preload/cli/doctor.h"
#include "preload/cli/run_command.h"
#include "preload/cli/stat_command.h"
#include "preload/cli/tunables_command.h"

namespace pghot {
namespace {

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

RunRequest run_request(std::vector<const char*> arguments) { return parse_run(arguments, "/home/user"); }

TEST(RunCommand, SettingsOptionsAndTheCommandAreToldApart) {
    const RunRequest request =
        run_request({"--mode", "observe", "freq_threshold=3", "PGHOT_RINGS=9", "--", "app", "-x", "a=b"});
    ASSERT_EQ(request.error, "");
    ASSERT_EQ(request.settings.size(), 3u);
    EXPECT_EQ(request.settings[0].name, "PGHOT_MODE");
    EXPECT_EQ(request.settings[1].name, "PGHOT_FREQ_THRESHOLD");
    EXPECT_EQ(request.settings[2].value, "9");
    EXPECT_EQ(request.command, (std::vector<std::string>{"app", "-x", "a=b"}));
}

TEST(RunCommand, TheDashesMayBeLeftOut) {
    EXPECT_EQ(run_request({"--mode=off", "app", "--mode", "x"}).command,
              (std::vector<std::string>{"app", "--mode", "x"}));
}

TEST(RunCommand, FileNamesBecomeAbsolute) {
    EXPECT_EQ(run_request({"--report", "r-%p.json", "app"}).settings[0].value, "/home/user/r-%p.json");
    EXPECT_EQ(run_request({"--report", "/r.json", "app"}).settings[0].value, "/r.json");
    EXPECT_EQ(run_request({"--report", "stderr", "app"}).settings[0].value, "stderr");
    EXPECT_EQ(run_request({"sources=replay:a.rec", "app"}).settings[0].value, "replay:/home/user/a.rec");
    EXPECT_EQ(run_request({"--library", "l.so", "app"}).library, "/home/user/l.so");
}

TEST(RunCommand, WhatCannotBeHonouredIsAnErrorBeforeTheProgramStarts) {
    EXPECT_TRUE(has(run_request({"--mode", "loud", "app"}).error, "off|observe|on"));
    EXPECT_TRUE(has(run_request({"freq_treshold=1", "app"}).error, "PGHOT_FREQ_THRESHOLD"));
    EXPECT_TRUE(has(run_request({"--fast", "app"}).error, "--fast"));
    EXPECT_TRUE(has(run_request({"--mode"}).error, "needs a value"));
    EXPECT_TRUE(has(run_request({"--report", "--", "true"}).error, "needs a value"));
    EXPECT_TRUE(has(run_request({"--"}).error, "needs a command"));
    EXPECT_TRUE(has(run_request({}).error, "needs a command"));
}

TEST(RunCommand, OurLibraryComesBeforeWhatWasPreloaded) {
    EXPECT_EQ(preload_list("/a/libpghot.so", nullptr), "/a/libpghot.so");
    EXPECT_EQ(preload_list("/a/libpghot.so", ""), "/a/libpghot.so");
    EXPECT_EQ(preload_list("/a/libpghot.so", "x.so y.so"), "/a/libpghot.so:x.so y.so");
}

TEST(RunCommand, APathThatTheLoaderWouldSplitIsRefused) {
    for (const char* path : {"/my dir/libpghot.so", "/a:b/libpghot.so", "/$LIB/libpghot.so"})
        EXPECT_EQ(preload_list(path, nullptr), "") << path;
}

TEST(RunCommand, TheLibraryIsFoundBesideTheCommandOrInLib) {
    const std::filesystem::path root = std::filesystem::path(testing::TempDir()) / "pghot_find_library";
    std::filesystem::remove_all(root);
    std::filesystem::create_directories(root / "bin");
    std::filesystem::create_directories(root / "lib");
    EXPECT_EQ(find_library(root / "bin/pghot"), "");
    std::ofstream(root / "lib/libpghot.so") << "x";
    EXPECT_EQ(find_library(root / "bin/pghot"), root / "lib/libpghot.so");
    std::ofstream(root / "bin/libpghot.so") << "x";
    EXPECT_EQ(find_library(root / "bin/pghot"), root / "bin/libpghot.so");
    std::filesystem::remove_all(root);
}

TEST(TunablesCommand, EverySettingIsInTextJsonAndMarkdown) {
    for (const TunableInfo& info : kTunables) {
        EXPECT_TRUE(has(tunables_text(Tunables{}), info.sentence)) << info.name;
        EXPECT_TRUE(has(tunables_json(Tunables{}), std::string("\"") + std::string(info.name) + "\": {")) << info.name;
        EXPECT_TRUE(has(tunables_markdown(), std::string("| `") + std::string(info.name) + "` |")) << info.name;
    }
}

TEST(TunablesCommand, ValuesOfTheEnvironmentAreMarked) {
    Tunables tunables;
    Warnings warnings;
    ASSERT_TRUE(read_tunable("PGHOT_RINGS", "7", tunables, warnings));
    EXPECT_TRUE(has(tunables_text(tunables), "PGHOT_RINGS=7    (set in the environment)"));
    EXPECT_FALSE(has(tunables_text(Tunables{}), "(set in the environment)"));
}

TEST(TunablesCommand, ABarInACellIsEscaped) { EXPECT_TRUE(has(tunables_markdown(), "off\\|observe\\|on")); }

// A machine with a DRAM node and a CXL node on which everything works.
DoctorFacts cxl_machine() {
    DoctorFacts facts;
    facts.kernel = "6.14.0";
    facts.topology.node_of_cpu.fill(-1);
    facts.topology.node_of_cpu[0] = facts.topology.node_of_cpu[1] = 0;
    facts.topology.cpu_count = 2;
    facts.topology.node_count = 2;
    facts.topology.nodes[0] = {.online_memory = true, .has_cpus = true, .allowed = true, .total_bytes = 4096 * kMiB};
    facts.topology.nodes[1] = {.online_memory = true, .allowed = true, .lower_tier = true, .total_bytes = 2048 * kMiB};
    facts.topology.evidence = TierEvidence::kMemoryTier;
    facts.ibs = {.type = 11, .l3missonly = true, .swfilt = true};
    facts.ibs_found = true;
    facts.perf_event_paranoid = 2;
    facts.numa_balancing = 0;
    return facts;
}

TEST(Doctor, AWorkingMachineTiers) {
    const DoctorFacts facts = cxl_machine();
    EXPECT_EQ(verdict_of(facts, Tunables{}), Verdict::kTiers);
    const std::string text = doctor_text(facts, Tunables{});
    for (const char* part : {"lower", "2.0 GiB", "0-1", "the kernel's memory tiers", "works for this user", "64 MiB"})
        EXPECT_TRUE(has(text, part)) << part << " in\n" << text;
    EXPECT_FALSE(has(text, "numa_balancing"));
}

TEST(Doctor, TheVerdictNamesTheFirstThingThatIsMissing) {
    DoctorFacts facts = cxl_machine();
    Tunables tunables;
    facts.move_pages_error = EPERM;
    EXPECT_EQ(verdict_of(facts, tunables), Verdict::kNoMigration);
    facts.move_pages_error = 0;
    facts.bound_elsewhere = true;
    EXPECT_EQ(verdict_of(facts, tunables), Verdict::kBoundElsewhere);
    EXPECT_FALSE(would_work(Verdict::kBoundElsewhere));
    facts.ibs_error = EACCES;
    EXPECT_EQ(verdict_of(facts, tunables), Verdict::kNoSource);
    facts.topology.nodes[1].lower_tier = false;
    EXPECT_EQ(verdict_of(facts, tunables), Verdict::kNoLowerTier);
    tunables.mode = Mode::kOff;
    EXPECT_EQ(verdict_of(facts, tunables), Verdict::kOff);
}

TEST(Doctor, ObservingNeedsNoMigrationAndReplayNoIbs) {
    DoctorFacts facts = cxl_machine();
    Tunables tunables;
    tunables.mode = Mode::kObserve;
    facts.move_pages_error = EPERM;
    EXPECT_EQ(verdict_of(facts, tunables), Verdict::kObserves);
    facts.ibs_error = ENOENT;
    EXPECT_EQ(verdict_of(facts, tunables), Verdict::kNoSource);
    Warnings warnings;
    ASSERT_TRUE(read_tunable("PGHOT_SOURCES", "replay:x", tunables, warnings));
    EXPECT_EQ(verdict_of(facts, tunables), Verdict::kObserves);
}

TEST(Doctor, ALadderThatEndsBeforeIbsDoesNotUseIt) {
    Tunables tunables;
    Warnings warnings;
    ASSERT_TRUE(read_tunable("PGHOT_SOURCES", "none,ibs", tunables, warnings));
    EXPECT_EQ(verdict_of(cxl_machine(), tunables), Verdict::kNoSource);
}

TEST(Doctor, ARefusalSaysWhatToAskFor) {
    DoctorFacts facts = cxl_machine();
    facts.ibs_error = EACCES;
    facts.perf_event_paranoid = 3;
    EXPECT_TRUE(has(ibs_advice(facts), "perf_event_paranoid=2"));
    facts.ibs.swfilt = false;
    EXPECT_TRUE(has(ibs_advice(facts), "perf_event_paranoid=1"));
    EXPECT_TRUE(has(ibs_advice(facts), "6.14"));
    facts.ibs_error = EINVAL;
    EXPECT_TRUE(has(ibs_advice(facts), "6.2"));
    facts.ibs_error = EPERM;
    facts.ring_refused = true;
    EXPECT_TRUE(has(ibs_advice(facts), "perf_event_mlock_kb"));
    EXPECT_FALSE(has(ibs_advice(facts), "paranoid"));
    facts.ibs_found = false;
    EXPECT_TRUE(has(ibs_advice(facts), "virtual machine"));
}

TEST(Doctor, RivalsAreSaid) {
    DoctorFacts facts = cxl_machine();
    facts.numa_balancing = 2;
    facts.damon_runs = facts.numad_runs = true;
    const std::string text = doctor_text(facts, Tunables{});
    for (const char* part : {"kernel.numa_balancing=2: the kernel promotes", "DAMON is on", "numad runs"})
        EXPECT_TRUE(has(text, part)) << part << " in\n" << text;
}

TEST(Doctor, ANodeOutsideTheCpusetIsMarked) {
    DoctorFacts facts = cxl_machine();
    facts.topology.nodes[1].allowed = false;
    EXPECT_TRUE(has(doctor_text(facts, Tunables{}), "outside this cpuset"));
}

TEST(Doctor, JsonSaysTheSameAsTheText) {
    const std::string json = doctor_json(cxl_machine(), Tunables{});
    for (const char* part :
         {"\"verdict\": \"tiers\"", "\"would_work\": true", "\"tier\": \"lower\"", "\"works\": true"})
        EXPECT_TRUE(has(json, part)) << part << " in\n" << json;
}

// ---- stat

std::vector<char> bytes_of(const Statistics& statistics) {
    const auto* begin = reinterpret_cast<const char*>(&statistics);
    return {begin, begin + sizeof statistics};
}

std::unique_ptr<Statistics> running_statistics() {
    auto statistics = std::make_unique<Statistics>();
    std::memcpy(statistics->magic, kStatisticsMagic, sizeof kStatisticsMagic);
    statistics->bytes = sizeof(Statistics);
    statistics->started_ns = kNsPerSecond;
    statistics->state = static_cast<uint32_t>(EngineState::kRunning);
    statistics->counters.add(Counter::hwhint_total_events, 4711);
    statistics->counters.add(Counter::promoted_bytes, 96 * kMiB);
    statistics->second[1] = {.samples = 815};
    statistics->rows = 2;
    statistics->period = 20000;
    std::strcpy(statistics->job, "slurm.7.0");
    std::strcpy(statistics->command, "./app --big");
    return statistics;
}

TEST(Stat, StatisticsOfAnotherVersionOrNoneAreTold) {
    const auto statistics = running_statistics();
    const std::vector<char> bytes = bytes_of(*statistics);
    EXPECT_TRUE(begins_as_statistics(bytes));
    ASSERT_NE(statistics_of(bytes), nullptr);
    EXPECT_EQ(statistics_of(bytes)->counters.get(Counter::hwhint_total_events), 4711u);
    EXPECT_EQ(statistics_of(std::span(bytes).first(100)), nullptr) << "cut";
    EXPECT_FALSE(begins_as_statistics(std::span(bytes).first(4)));
    EXPECT_FALSE(begins_as_statistics(std::vector<char>(sizeof(Statistics)))) << "just beginning";
    statistics->version = kStatisticsVersion + 1;
    EXPECT_EQ(statistics_of(bytes_of(*statistics)), nullptr);
    EXPECT_TRUE(begins_as_statistics(bytes_of(*statistics)));
}

TEST(Stat, AProcessIsALine) {
    std::vector<RunningProcess> processes;
    processes.push_back({1234, running_statistics(), 0.25});
    processes.push_back({1235, nullptr, {}});
    const TimeNs now{61 * kNsPerSecond};
    const std::string text = stat_text(processes, now);
    for (const char* part : {"1234", "running", " 60 ", "4711", "815", " 96 ", "25 %", "20000", "slurm.7.0",
                             "./app --big", "1235  another version"})
        EXPECT_TRUE(has(text, part)) << part << " in\n" << text;
    const std::string json = stat_json(processes, now);
    for (const char* part : {"\"pid\": 1234", "\"budget_percent\": 25", "\"samples_per_second\": 815",
                             "\"promoted_bytes\": 100663296", "\"same_version\": false"})
        EXPECT_TRUE(has(json, part)) << part << " in\n" << json;
    EXPECT_TRUE(has(stat_text({}, now), "no process"));
}

TEST(Stat, WhatWasCleanedIsListedWithTheReasonWhereItWasNot) {
    const std::vector<JobFile> jobs{{"/dev/shm/pghot.0.a", JobFile::Fate::kRemoved, ""},
                                    {"/dev/shm/pghot.0.b", JobFile::Fate::kInUse, ""},
                                    {"/dev/shm/pghot.0.c", JobFile::Fate::kNotRemoved, "it is another user's"}};
    EXPECT_EQ(clean_text(jobs),
              "/dev/shm/pghot.0.a: removed\n/dev/shm/pghot.0.b: in use\n/dev/shm/pghot.0.c: not removed: it is another "
              "user's\n");
    EXPECT_TRUE(has(clean_json(jobs), "\"fate\": \"in use\""));
    EXPECT_TRUE(has(clean_text({}), "no job of yours"));
}

TEST(Doctor, TheJobThatAProcessWouldJoinIsNamed) {
    DoctorFacts facts = cxl_machine();
    EXPECT_TRUE(has(doctor_text(facts, Tunables{}), "none: a process started here has its budgets for itself"));
    facts.job = "slurm.7.0";
    EXPECT_TRUE(has(doctor_text(facts, Tunables{}), "slurm.7.0: a process started here shares"));
    EXPECT_TRUE(has(doctor_json(facts, Tunables{}), "\"job\": \"slurm.7.0\""));
}

}    // namespace
}    // namespace pghot
