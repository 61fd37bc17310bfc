// SPDX-License-Identifier: Apache-2.0
// The job's board in /dev/shm, with real processes: who may share it, who may not, and what a SIGKILL leaves.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/engine/job.h"
#include "runtime/kernel/process.h"
#include "runtime/kernel/syscalls.h"

namespace pghot {
namespace {

constexpr size_t kBytes = 8192;

class SharedFile : public testing::Test {
protected:
    void SetUp() override {
        if (access(kJobFolder, W_OK) != 0) GTEST_SKIP() << "no /dev/shm to write to";
    }
    void TearDown() override { unlink(path.c_str()); }
    Status open(SharedMemory::Missing missing = SharedMemory::Missing::kMake) {
        SharedMemory memory;
        const Status status = memory.open(path.c_str(), kBytes, missing);
        memory.unmap();
        return status;
    }
    void make(mode_t mode, off_t bytes) {
        const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        ASSERT_GE(fd, 0);
        ASSERT_EQ(fchmod(fd, mode), 0);
        ASSERT_EQ(ftruncate(fd, bytes), 0);
        close(fd);
    }
    std::string path = std::string(kJobFolder) + "/pghot_test_" + std::to_string(getpid());
};

TEST_F(SharedFile, IsMadeOnceZeroedAndPrivateToTheUser) {
    SharedMemory first, second;
    ASSERT_TRUE(first.open(path.c_str(), kBytes, SharedMemory::Missing::kMake).ok());
    ASSERT_EQ(first.bytes().size(), kBytes);
    EXPECT_EQ(first.bytes()[kBytes - 1], std::byte{0});
    first.bytes()[0] = std::byte{7};
    first.close();
    struct stat info {};
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777u, 0600u);
    ASSERT_TRUE(second.open(path.c_str(), kBytes, SharedMemory::Missing::kMake).ok());
    EXPECT_EQ(second.bytes()[0], std::byte{7});
    EXPECT_EQ(first.identity(), second.identity());
    first.unmap();
    second.unmap();
}

TEST_F(SharedFile, AMissingOneIsNotMadeUnlessAsked) {
    EXPECT_EQ(open(SharedMemory::Missing::kRefuse).error, ENOENT);
    EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST_F(SharedFile, ALinkIsNotFollowed) {
    ASSERT_EQ(symlink("/dev/zero", path.c_str()), 0);
    EXPECT_EQ(open().error, ELOOP);
}

TEST_F(SharedFile, AnEmptyFileIsTakenAsNew) {
    make(0600, 0);
    EXPECT_TRUE(open().ok());
}

TEST_F(SharedFile, OtherModesLengthsNamesAndKindsAreRefused) {
    make(0660, kBytes);
    EXPECT_EQ(open().error, EACCES);
    unlink(path.c_str());
    make(0600, kBytes + 1);
    EXPECT_EQ(open().error, EINVAL);
    unlink(path.c_str());
    make(0600, kBytes);
    const std::string other = path + ".other";
    ASSERT_EQ(link(path.c_str(), other.c_str()), 0);
    EXPECT_EQ(open().error, EMLINK);
    unlink(other.c_str());
    EXPECT_TRUE(open().ok());
    unlink(path.c_str());
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    EXPECT_EQ(open().error, EINVAL) << "and it does not wait for a writer";
}

TEST_F(SharedFile, AnotherUsersIsRefused) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root to make another user's file";
    make(0600, kBytes);
    ASSERT_EQ(chown(path.c_str(), 12345, 12345), 0);
    EXPECT_EQ(open().error, EPERM);
}

TEST_F(SharedFile, WhoeverHoldsTheLockAllTheTimeIsNotWaitedForForEver) {
    SharedMemory holder;
    ASSERT_TRUE(holder.open(path.c_str(), kBytes, SharedMemory::Missing::kMake).ok());
    EXPECT_EQ(open().error, EBUSY);
    holder.close();
    EXPECT_TRUE(open().ok());
    holder.unmap();
}

TEST_F(SharedFile, AFileThatIsRemovedWhileItIsWaitedForIsMadeAnew) {
    SharedMemory holder;
    ASSERT_TRUE(holder.open(path.c_str(), kBytes, SharedMemory::Missing::kMake).ok());
    Status status{"", EIO};
    std::thread waiting([&] { status = open(); });
    usleep(20000);
    EXPECT_EQ(holder.remove(path.c_str()), 0);
    holder.close();
    waiting.join();
    EXPECT_TRUE(status.ok()) << status.what;
    EXPECT_EQ(access(path.c_str(), F_OK), 0);
    holder.unmap();
}

// ---- ranks

class Ranks : public testing::Test {
protected:
    void SetUp() override {
        if (access(kJobFolder, W_OK) != 0) GTEST_SKIP() << "no /dev/shm to write to";
    }
    void TearDown() override { unlink(file().c_str()); }
    std::string file() const { return std::string(job_file(name).view()); }
    bool exists() const { return access(file().c_str(), F_OK) == 0; }

    // A process that joins and runs `body`, then ends without leaving.
    template <typename Body>
    pid_t start(Body body) {
        const pid_t pid = fork();
        if (pid != 0) return pid;
        Job job;
        if (!job.join(name, files, sys::now()).ok()) _exit(3);
        body(job);
        _exit(0);
    }
    static void kill_and_wait(pid_t pid) {
        kill(pid, SIGKILL);
        ASSERT_EQ(waitpid(pid, nullptr, 0), pid);
    }
    static TimeNs long_after() { return sys::now() + 60 * kNsPerSecond; }

    KernelFiles files;
    std::string name = "test-" + std::to_string(getpid());
};

[[noreturn]] void sleep_for_ever(Job&) {
    for (;;) pause();
}

TEST_F(Ranks, ShareABoardAndTheLastOneThatLeavesRemovesIt) {
    Job first, second;
    ASSERT_TRUE(first.join(name, files, sys::now()).ok());
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t other = start([&](Job& job) {
        const char slot = static_cast<char>(job.slot());
        (void)!write(ends[1], &slot, 1);
        sleep_for_ever(job);
    });
    char slot = 0;
    close(ends[1]);    // a rank that cannot join ends the wait
    ASSERT_EQ(read(ends[0], &slot, 1), 1);
    EXPECT_EQ(slot, 1);
    EXPECT_EQ(ranks_alive(*first.board(), sys::now()), 2u);
    first.leave(files, sys::now());
    EXPECT_TRUE(exists()) << "the other still uses it";
    ASSERT_TRUE(second.join(name, files, sys::now()).ok());
    kill_and_wait(other);
    second.leave(files, sys::now());
    EXPECT_FALSE(exists()) << "the other is dead";
    close(ends[0]);
}

TEST_F(Ranks, AProcessThatJoinsAgainAfterExecHasItsOwnSlot) {
    Job before, after;
    ASSERT_TRUE(before.join(name, files, sys::now()).ok());
    ASSERT_TRUE(after.join(name, files, sys::now()).ok());
    EXPECT_EQ(after.slot(), before.slot());
    after.leave(files, sys::now());
    EXPECT_FALSE(exists());
}

TEST_F(Ranks, WhatAKilledLaunchLeftIsTakenOver) {
    for (int i = 0; i < 3; ++i) kill_and_wait(start(sleep_for_ever));
    // Whether they had joined before they were killed or not.
    Job job;
    ASSERT_TRUE(job.join(name, files, long_after()).ok());
    EXPECT_EQ(job.slot(), 0u);
    EXPECT_EQ(job.board()->ranks_seen.load(), 1u);
    job.leave(files, long_after());
    EXPECT_FALSE(exists());
}

TEST_F(Ranks, AFileThatIsNoBoardIsRefused) {
    {
        SharedMemory memory;
        ASSERT_TRUE(memory.open(file().c_str(), sizeof(JobBoard), SharedMemory::Missing::kMake).ok());
        reinterpret_cast<JobBoard*>(memory.bytes().data())->format.store(1);
        memory.unmap();
    }
    Job job;
    EXPECT_EQ(job.join(name, files, sys::now()).error, EINVAL);
    EXPECT_EQ(job.board(), nullptr);
}

TEST_F(Ranks, RanksInAnotherPidNamespaceAreNotJoined) {
    Job job, other;
    ASSERT_TRUE(job.join(name, files, sys::now()).ok());
    job.board()->pid_namespace.store(1);
    EXPECT_EQ(other.join(name, files, sys::now()).error, EXDEV);
    EXPECT_TRUE(anybody_is_on(*job.board(), files, sys::now())) << "it cannot be seen, but it shows life";
    EXPECT_FALSE(anybody_is_on(*job.board(), files, long_after()));
}

TEST_F(Ranks, MoreThanThereAreSlotsAreAlone) {
    Job first;
    ASSERT_TRUE(first.join(name, files, sys::now()).ok());
    for (JobSlot& slot : first.board()->slots) {
        slot.owner.store(job_owner(1, 1));    // shows life: not asked about
        slot.alive_ns.store(sys::now().ns);
    }
    first.board()->slots_used.store(kJobSlots);
    Job job;
    EXPECT_EQ(job.join(name, files, sys::now()).error, ENOSPC);
    for (JobSlot& slot : first.board()->slots) slot.owner.store(0);
}

TEST_F(Ranks, ThatStartAndEndAtTheSameTimeLeaveNothingBehind) {
    for (int round = 0; round < 20; ++round) {
        std::vector<pid_t> pids;
        for (int i = 0; i < 8; ++i)
            pids.push_back(start([this](Job& job) {
                usleep(static_cast<useconds_t>(job.slot()) * 300);
                job.leave(files, sys::now());
            }));
        for (const pid_t pid : pids) {
            int status = 0;
            ASSERT_EQ(waitpid(pid, &status, 0), pid);
            EXPECT_EQ(status, 0);
        }
        EXPECT_FALSE(exists()) << "round " << round;
    }
}

// 200 times, four ranks want more than there is, and some are killed at a random moment: in the middle of joining, of
// a word, of waiting. Those that live go on, and all together stay within the budget.
TEST_F(Ranks, KilledAtRandomMomentsBlockNobody) {
    const auto seed = std::random_device{}();
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    constexpr uint32_t kRate = 1024;    // a batch takes 2 ms
    constexpr uint64_t kBatch = 2 * kMiB;
    constexpr size_t kRanks = 4;
    void* counts = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(counts, MAP_FAILED);
    auto* granted = static_cast<std::atomic<uint64_t>*>(counts);
    const auto move_for_ever = [&](std::atomic<uint64_t>& bytes) {
        return [&](Job& job) {
            FairBudget budget(job.board(), job.slot(), kRate, kBatch);
            for (;;) {
                const TimeNs now = sys::now();
                const BudgetAnswer answer = budget.take(kBatch, now);
                if (answer.granted) {
                    bytes.fetch_add(kBatch);
                    continue;
                }
                const uint32_t word = 0;
                sys::futex_wait(&word, 0, static_cast<uint64_t>(answer.retry_at - now));
            }
        };
    };
    const TimeNs start_time = sys::now();
    uint64_t total = 0;
    std::vector<pid_t> pids(kRanks, 0);
    for (int round = 0; round < 200; ++round) {
        for (size_t i = 0; i < kRanks; ++i)
            if (pids[i] == 0) pids[i] = start(move_for_ever(granted[i]));
        usleep(static_cast<useconds_t>(random() % 8000));
        const size_t survivor = random() % kRanks;
        for (size_t i = 0; i < kRanks; ++i) {
            if (i == survivor || random() % 3 == 0) continue;
            kill_and_wait(pids[i]);
            pids[i] = 0;
        }
        const uint64_t before = granted[survivor].load();
        const TimeNs limit = sys::now() + 20 * kNsPerSecond;
        while (granted[survivor].load() == before && sys::now() < limit) usleep(500);
        ASSERT_GT(granted[survivor].load(), before) << "round " << round << ": the survivor is blocked";
    }
    for (const pid_t pid : pids)
        if (pid != 0) kill_and_wait(pid);
    const double seconds = static_cast<double>(sys::now() - start_time) / kNsPerSecond;
    for (size_t i = 0; i < kRanks; ++i) total += granted[i].load();
    EXPECT_LE(static_cast<double>(total), seconds * kRate * kMiB + 2 * kBatch);
    munmap(counts, kPageBytes);
}

}    // namespace
}    // namespace pghot
