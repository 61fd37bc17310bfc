// SPDX-License-Identifier: Apache-2.0
#include "runtime/config/job_name.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/config/tunables.h"

namespace pghot {
namespace {

std::string job_of(std::vector<const char*> environment, int32_t parent = 4711) {
    environment.push_back(nullptr);
    return std::string(job_of_launcher(environment.data(), [&] { return parent; }).view());
}

TEST(JobName, EachLauncherNamesItsLaunch) {
    EXPECT_EQ(job_of({"PMIX_NAMESPACE=1838809089", "OMPI_COMM_WORLD_SIZE=4"}), "pmix.1838809089");
    EXPECT_EQ(job_of({"PMIX_NAMESPACE=prterun-node7-1234@1"}), "pmix.prterun-node7-1234_1");
    EXPECT_EQ(job_of({"PALS_APID=3f2a-77", "PALS_SIZE=64"}), "pals.3f2a-77");
    EXPECT_EQ(job_of({"FLUX_JOB_ID=86453"}), "flux.86453");
    EXPECT_EQ(job_of({"SLURM_JOB_ID=99", "SLURM_STEP_ID=3", "SLURM_STEP_NUM_TASKS=128"}), "slurm.99.3");
    EXPECT_EQ(job_of({"PMI_RANK=0", "PMI_SIZE=8"}, 815), "pmi.815");
}

TEST(JobName, AnMpiLauncherCountsBeforeTheBatchSystemThatStartedIt) {
    EXPECT_EQ(job_of({"SLURM_JOB_ID=99", "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=2", "PMIX_NAMESPACE=5",
                      "OMPI_COMM_WORLD_SIZE=64"}),
              "pmix.5");
}

TEST(JobName, ALaunchOfOneProcessSharesNothing) {
    EXPECT_EQ(job_of({"PMIX_NAMESPACE=5", "OMPI_COMM_WORLD_SIZE=1"}), "");
    EXPECT_EQ(job_of({"SLURM_JOB_ID=99", "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=1"}), "") << "srun --pty bash";
    EXPECT_EQ(job_of({"PMI_RANK=0", "PMI_SIZE=1"}), "");
}

TEST(JobName, AnAllocationAloneIsNoJob) {
    EXPECT_EQ(job_of({"SLURM_JOB_ID=99"}), "") << "salloc";
    EXPECT_EQ(job_of({"SLURM_JOB_ID=99", "SLURM_STEP_ID=4294967291"}), "") << "a batch script";
    EXPECT_EQ(job_of({"SLURM_JOB_ID=99", "SLURM_STEP_ID=4294967290", "SLURM_STEP_NUM_TASKS=8"}), "") << "its shell";
    EXPECT_EQ(job_of({"PBS_JOBID=1.server", "LSB_JOBID=7"}), "");
    EXPECT_EQ(job_of({}), "");
    EXPECT_EQ(job_of_launcher(nullptr, [] { return 1; }).view(), "");
}

TEST(JobName, TheParentIsAskedOnlyWhereItIsNeeded) {
    const char* const environment[] = {"PMIX_NAMESPACE=5", "PMI_RANK=1", "PMI_SIZE=8", nullptr};
    EXPECT_EQ(job_of_launcher(environment,
                              [] {
                                  ADD_FAILURE() << "a system call for nothing";
                                  return 1;
                              })
                  .view(),
              "pmix.5");
}

TEST(JobName, ALongNameIsCutAndStaysDifferent) {
    const std::string long_name(300, 'x');
    const std::string a = job_of({("PMIX_NAMESPACE=" + long_name + "@1").c_str()});
    const std::string b = job_of({("PMIX_NAMESPACE=" + long_name + "@2").c_str()});
    EXPECT_TRUE(is_job_name(a) && is_job_name(b)) << a << ' ' << b;
    EXPECT_NE(a, b);
}

TEST(JobName, NothingLeavesTheFolder) {
    const std::string name = job_of({"FLUX_JOB_ID=../../etc/x\n\xff"});
    EXPECT_EQ(name, "flux..._.._etc_x__");
    EXPECT_TRUE(is_job_name(name));
}

TEST(JobName, TheSettingTakesPlainNamesOnly) {
    for (const std::string& good :
         {std::string("a"), std::string("none"), std::string("my-job_1.2"), std::string(63, 'j')}) {
        Tunables tunables;
        Warnings warnings;
        EXPECT_TRUE(read_tunable("PGHOT_JOB", good, tunables, warnings)) << good;
        EXPECT_EQ(tunables.job.view(), good);
    }
    for (const std::string& bad : {std::string("a/b"), std::string(".."), std::string("a b"), std::string(64, 'j')}) {
        Tunables tunables;
        Warnings warnings;
        EXPECT_FALSE(read_tunable("PGHOT_JOB", bad, tunables, warnings)) << bad;
        EXPECT_NE(warnings[0].find("PGHOT_JOB="), std::string_view::npos);
        EXPECT_TRUE(tunables.job.empty());
    }
}

TEST(Percent, HasOneDigitAfterThePoint) {
    for (const auto& [text, tenths] : {std::pair{"1", 10u}, {"0.1", 1u}, {"100", 1000u}, {"2.5", 25u}, {"33%", 330u}}) {
        Tunables tunables;
        Warnings warnings;
        EXPECT_TRUE(read_tunable("PGHOT_SAMPLER_CPU", text, tunables, warnings)) << text;
        EXPECT_EQ(tunables.sampler_cpu.tenths, tenths);
    }
    for (const char* bad : {"0", "100.1", "1.25", ".5", "1.", "x", "-1", "1 000", "99999999999999999999"}) {
        Tunables tunables;
        Warnings warnings;
        EXPECT_FALSE(read_tunable("PGHOT_SAMPLER_CPU", bad, tunables, warnings)) << bad;
        EXPECT_EQ(tunables.sampler_cpu.tenths, 10u);
    }
}

}    // namespace
}    // namespace pghot
