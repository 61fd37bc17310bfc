// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

#include "runtime/config/tunables.h"

namespace pghot {
namespace {

// An environment made of NAME=VALUE strings, read into tunables and warnings.
struct Reading {
    explicit Reading(std::vector<std::string> entries, bool secure = false) {
        std::vector<const char*> environment;
        for (const std::string& entry : entries) environment.push_back(entry.c_str());
        environment.push_back(nullptr);
        tunables = read_tunables(environment.data(), secure, warnings);
    }
    std::string warning(size_t line) const { return std::string(warnings[line]); }

    Warnings warnings;
    Tunables tunables;
};

std::string text_of(const Tunables& tunables, std::string_view name) {
    char storage[kTunableTextBytes];
    for (size_t row = 0; row < kTunables.size(); ++row)
        if (kTunables[row].name == name) return std::string(tunable_text(tunables, row, storage));
    return "no such row";
}

TEST(Tunables, EveryDefaultIsWrittenInAFormThatIsReadBack) {
    const Tunables defaults;
    for (size_t row = 0; row < kTunables.size(); ++row) {
        char storage[kTunableTextBytes];
        const std::string text(tunable_text(defaults, row, storage));
        Tunables again;
        Warnings warnings;
        EXPECT_TRUE(read_tunable(kTunables[row].name, text, again, warnings)) << kTunables[row].name << "=" << text;
        EXPECT_EQ(text_of(again, kTunables[row].name), text);
    }
}

TEST(Tunables, DefaultsAreTheKernelsWhereTheKernelHasTheSetting) {
    const Tunables defaults;
    EXPECT_EQ(defaults.freq_window_ms, 3000u);
    EXPECT_EQ(defaults.freq_threshold, 2u);
    EXPECT_EQ(defaults.rate_limit_mbps, 65536u);
    EXPECT_EQ(defaults.migrate_sleep_ms, 100u);
    EXPECT_EQ(defaults.ibs_period, 10000u);
    EXPECT_TRUE(defaults.ibs_l3missonly);
}

TEST(Tunables, NothingIsSetInAnEmptyEnvironment) {
    EXPECT_EQ(Reading({"PATH=/bin", "HOME=/"}).tunables.set_by_user, 0u);
    Warnings warnings;
    EXPECT_EQ(read_tunables(nullptr, false, warnings).set_by_user, 0u);
}

TEST(Tunables, ValuesAreReadAndMarkedAsSet) {
    const Reading reading({"PGHOT_MODE=observe", "PGHOT_FREQ_THRESHOLD=7", "PGHOT_TARGET_NID=3"});
    EXPECT_EQ(reading.tunables.mode, Mode::kObserve);
    EXPECT_EQ(reading.tunables.freq_threshold, 7u);
    EXPECT_EQ(reading.tunables.target_nid, (Target{Target::Kind::kNode, NodeId{3}}));
    EXPECT_EQ(std::popcount(reading.tunables.set_by_user), 3);
    EXPECT_EQ(reading.warnings.size(), 0u);
}

TEST(Tunables, TheBoundsOfARangeAreAllowedAndTheirNeighboursAreNot) {
    EXPECT_EQ(Reading({"PGHOT_FREQ_WINDOW=1000"}).tunables.freq_window_ms, 1000u);
    EXPECT_EQ(Reading({"PGHOT_FREQ_WINDOW=16383"}).tunables.freq_window_ms, 16383u);
    EXPECT_EQ(Reading({"PGHOT_FREQ_WINDOW=999"}).tunables.freq_window_ms, 3000u);
    EXPECT_EQ(Reading({"PGHOT_FREQ_WINDOW=16384"}).tunables.freq_window_ms, 3000u);
}

TEST(Tunables, TimesTakeMillisecondsAndSeconds) {
    EXPECT_EQ(Reading({"PGHOT_FREQ_WINDOW=2s"}).tunables.freq_window_ms, 2000u);
    EXPECT_EQ(Reading({"PGHOT_FREQ_WINDOW= 2000 ms "}).tunables.freq_window_ms, 2000u);
    EXPECT_EQ(Reading({"PGHOT_FREQ_WINDOW=2M"}).warnings.size(), 1u);
}

TEST(Tunables, SizesTakePowersOf1024) {
    for (const char* value : {"1073741824", "1048576K", "1024M", "1G", "1GB", "1GiB", "1g", " 1 G "})
        EXPECT_EQ(Reading({std::string("PGHOT_HEAT_MEM=") + value}).tunables.heat_mem_bytes, 1u << 30) << value;
    for (const char* value :
         {"1.5G", "1,5G", "4Gi", "-1G", "0x100000000", "1P", "G", "99999999999999999999", "20000000T"})
        EXPECT_EQ(Reading({std::string("PGHOT_HEAT_MEM=") + value}).warnings.size(), 1u) << value;
}

TEST(Tunables, ThePeriodMustBeAMultipleOfSixteen) {
    EXPECT_EQ(Reading({"PGHOT_IBS_PERIOD=144"}).tunables.ibs_period, 144u);
    EXPECT_EQ(Reading({"PGHOT_IBS_PERIOD=145"}).tunables.ibs_period, 10000u);
    EXPECT_EQ(Reading({"PGHOT_IBS_PERIOD=128"}).tunables.ibs_period, 10000u);
}

TEST(Tunables, WhereZeroIsOffItIsAllowedBesideTheRange) {
    for (const uint32_t cycles : {0u, 128u, 2048u}) {
        const Reading reading({"PGHOT_IBS_LDLAT=" + std::to_string(cycles)});
        EXPECT_EQ(reading.tunables.ibs_ldlat_cycles, cycles);
        EXPECT_EQ(reading.warnings.size(), 0u);
    }
    for (const char* value : {"1", "127", "2049", "00x"}) {
        const Reading reading({std::string("PGHOT_IBS_LDLAT=") + value});
        ASSERT_EQ(reading.warnings.size(), 1u) << value;
        EXPECT_NE(reading.warning(0).find("allowed 0 or 128-2048 cycles, using 0"), std::string::npos);
    }
}

TEST(Tunables, NodeAndCpuListsAreReadLikeTheKernels) {
    const Reading reading({"PGHOT_LOWER_NODES=2-3,5", "PGHOT_CPUS=0,4095"});
    EXPECT_EQ(reading.tunables.lower_nodes.words[0], 0b101100u);
    EXPECT_TRUE(reading.tunables.cpus.contains(4095));
    EXPECT_FALSE(reading.tunables.cpus.contains(4094));
    EXPECT_EQ(text_of(reading.tunables, "PGHOT_LOWER_NODES"), "2-3,5");
    for (const char* value : {"64", "3-2", "1-", "-1", "1,,2", "1,", ",", "a", "0-99999999999999999999"})
        EXPECT_EQ(Reading({std::string("PGHOT_LOWER_NODES=") + value}).warnings.size(), 1u) << value;
}

TEST(Tunables, AListThatDoesNotFitEndsInDotsNotInHalfANumber) {
    Tunables tunables;
    for (size_t cpu = 0; cpu < kMaxCpus; cpu += 2) tunables.cpus.insert(cpu);
    const std::string text = text_of(tunables, "PGHOT_CPUS");
    EXPECT_TRUE(text.starts_with("0,2,4,")) << text;
    EXPECT_TRUE(text.ends_with("...")) << text;
}

TEST(Tunables, SourcesAreALadderOrOneRecording) {
    const Reading ladder({"PGHOT_SOURCES=ibs, none"});
    ASSERT_EQ(ladder.tunables.sources.count, 2u);
    EXPECT_EQ(ladder.tunables.sources.order[1], SourceKind::kNone);
    const Reading replay({"PGHOT_SOURCES=replay:/data/a,b.rec"});
    EXPECT_EQ(replay.tunables.sources.order[0], SourceKind::kReplay);
    EXPECT_EQ(replay.tunables.sources.replay_file.view(), "/data/a,b.rec");
    EXPECT_EQ(text_of(replay.tunables, "PGHOT_SOURCES"), "replay:/data/a,b.rec");
    for (const char* value : {"ibs,replay:x", "replay:", "pebs", "ibs,ibs,ibs,ibs", "ibs,"})
        EXPECT_EQ(Reading({std::string("PGHOT_SOURCES=") + value}).warnings.size(), 1u) << value;
}

TEST(Tunables, AnUnreadableValueIsOneLineWithVariableValueRangeAndDefault) {
    const Reading reading({"PGHOT_FREQ_WINDOW=ab\ncd"});
    ASSERT_EQ(reading.warnings.size(), 1u);
    EXPECT_EQ(reading.warning(0),
              "pghot: PGHOT_FREQ_WINDOW=ab\\x0acd cannot be used: allowed 1000-16383 ms, using 3000");
    EXPECT_EQ(reading.tunables.set_by_user, 0u);
}

TEST(Tunables, AVeryLongValueIsShortened) {
    const Reading reading({"PGHOT_MODE=" + std::string(5000, '\x01')});
    ASSERT_EQ(reading.warnings.size(), 1u);
    EXPECT_LT(reading.warning(0).size(), Warnings::kLineBytes);
    EXPECT_NE(reading.warning(0).find("..."), std::string::npos);
    EXPECT_NE(reading.warning(0).find("using on"), std::string::npos);
    EXPECT_EQ(Reading({"PGHOT_REPORT=" + std::string(5000, 'x')}).warnings.size(), 1u);
}

TEST(Tunables, AMisspeltNameIsToldTheNearestOne) {
    EXPECT_EQ(Reading({"PGHOT_FREQ_TRESHOLD=1"}).warning(0),
              "pghot: PGHOT_FREQ_TRESHOLD is not a setting, ignored; did you mean PGHOT_FREQ_THRESHOLD");
    EXPECT_EQ(Reading({"PGHOT_BANANA=1"}).warning(0), "pghot: PGHOT_BANANA is not a setting, ignored");
    EXPECT_EQ(Reading({"PGHOT_" + std::string(3000, 'A') + "=1"}).warnings.size(), 1u);
}

TEST(Tunables, OfAVariableGivenTwiceTheFirstCounts) {
    EXPECT_EQ(Reading({"PGHOT_FREQ_THRESHOLD=3", "PGHOT_FREQ_THRESHOLD=5"}).tunables.freq_threshold, 3u);
    EXPECT_EQ(Reading({"PGHOT_FREQ_THRESHOLD=x", "PGHOT_FREQ_THRESHOLD=y"}).warnings.size(), 1u);
}

TEST(Tunables, AnEmptyValueIsAsIfNotGiven) {
    for (const TunableInfo& info : kTunables) {
        const Reading reading({std::string(info.name) + "="});
        EXPECT_EQ(reading.warnings.size(), 0u) << info.name;
        EXPECT_EQ(reading.tunables.set_by_user, 0u) << info.name;
    }
}

TEST(Tunables, WarningsAreBoundedAndTheRestIsCounted) {
    std::vector<std::string> entries;
    for (int i = 0; i < 20; ++i) entries.push_back("PGHOT_UNKNOWN_THING_" + std::to_string(i) + "=1");
    const Reading reading(entries);
    EXPECT_EQ(reading.warnings.size(), Warnings::kLines);
    EXPECT_EQ(reading.warnings.left_out(), 20 - Warnings::kLines);
}

TEST(Tunables, ASecureProgramIgnoresAllSettingsSilently) {
    const Reading reading({"PGHOT_MODE=off", "PGHOT_NONSENSE=1"}, true);
    EXPECT_EQ(reading.tunables.mode, Mode::kOn);
    EXPECT_EQ(reading.warnings.size(), 0u);
}

}    // namespace
}    // namespace pghot
