// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "runtime/config/file_name.h"

namespace pghot {
namespace {

std::string expanded(std::string_view pattern, FileNameParts parts = {42, "7", "n01.cluster"}) {
    char storage[64];
    return std::string(expand_file_name(pattern, parts, storage));
}

TEST(FileName, ProcessRankAndHostAreReplaced) { EXPECT_EQ(expanded("out/%h-%r-%p.json"), "out/n01.cluster-7-42.json"); }

TEST(FileName, APlainNameStays) { EXPECT_EQ(expanded("report.json"), "report.json"); }

TEST(FileName, OutsideAJobTheRankIsZero) { EXPECT_EQ(expanded("%r", {1, "", "h"}), "0"); }

TEST(FileName, PercentSignsOfNoMeaningStay) { EXPECT_EQ(expanded("100%%_%x_%"), "100%_%x_%"); }

TEST(FileName, AHostNameCannotLeaveTheFolder) { EXPECT_EQ(expanded("%h", {1, "", "../a b"}), ".._a_b"); }

TEST(FileName, TheResultEndsInAZeroByteAndTheBoundIsExact) {
    char storage[4];
    EXPECT_EQ(expand_file_name("abc", {}, storage), "abc");
    EXPECT_EQ(storage[3], '\0');
    EXPECT_TRUE(expand_file_name("abcd", {}, storage).empty());
    EXPECT_TRUE(expand_file_name("abc", {}, {}).empty());
}

TEST(FileName, TheRankComesFromTheFirstLauncherThatGivesANumber) {
    const char* const open_mpi[] = {"SLURM_PROCID=9", "OMPI_COMM_WORLD_RANK=3", nullptr};
    EXPECT_EQ(mpi_rank(open_mpi), "3");
    const char* const slurm[] = {"PMI_RANK=../x", "SLURM_PROCID=9", nullptr};
    EXPECT_EQ(mpi_rank(slurm), "9");
    const char* const none[] = {"PMI_RANKS=1", "PMI_RANK=", nullptr};
    EXPECT_EQ(mpi_rank(none), "");
    EXPECT_EQ(mpi_rank(nullptr), "");
}

}    // namespace
}    // namespace pghot
