// SPDX-License-Identifier: Apache-2.0
// The ring and the decoder on a real kernel: page faults of a thread carry exact addresses, whatever the machine.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "runtime/kernel/perf_event.h"
#include "runtime/kernel/syscalls.h"
#include "runtime/sources/ibs_source.h"
#include "runtime/sources/sample_decoder.h"
#include "tests/unit/fake_files.h"

namespace pghot {
namespace {

PerfEventSettings page_faults() {
    PerfEventSettings settings;
    settings.pmu_type = PERF_TYPE_SOFTWARE;
    settings.config = PERF_COUNT_SW_PAGE_FAULTS;
    settings.sample_period = 1;
    settings.exclude_kernel = true;
    return settings;
}

class PageFaults : public testing::Test {
protected:
    void SetUp() override {
        const int error = event.open(page_faults(), sys::thread_id());
        if (error == -EACCES) GTEST_SKIP() << "perf_event_open is not permitted (kernel.perf_event_paranoid)";
        if (error == -ENOSYS || error == -EPERM)
            GTEST_SKIP() << "perf_event_open is blocked here: " << strerror(-error);
        ASSERT_EQ(error, 0) << strerror(-error);
    }
    std::vector<RawSample> drain() {
        std::vector<RawSample> samples;
        event.ring().drain([&](const PerfRecord& record) {
            RawSample raw;
            if (record.type == PERF_RECORD_SAMPLE && decode_sample(record, raw)) samples.push_back(raw);
            if (record.type == PERF_RECORD_LOST) std::memcpy(&lost, record.body.data() + 8, sizeof lost);
        });
        return samples;
    }
    static char* fresh_pages(size_t count) {
        void* at = mmap(nullptr, count * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(at, count * kPageBytes, MADV_NOHUGEPAGE);
        return static_cast<char*>(at);
    }

    PerfEvent event;
    uint64_t lost = 0;
};

TEST_F(PageFaults, EveryFirstTouchIsASampleWithItsAddress) {
    constexpr size_t kPages = 200;
    char* pages = fresh_pages(kPages);
    drain();
    const uint64_t before = sys::now().ns;
    for (size_t i = 0; i < kPages; ++i) pages[i * kPageBytes + 100] = 1;
    const uint64_t after = sys::now().ns;
    std::set<uintptr_t> touched;
    for (const RawSample& sample : drain()) {
        const uintptr_t offset = sample.address - reinterpret_cast<uintptr_t>(pages);
        if (offset >= kPages * kPageBytes) continue;
        EXPECT_EQ(offset % kPageBytes, 100u);
        EXPECT_GE(sample.time_ns, before) << "the ring's clock is CLOCK_MONOTONIC";
        EXPECT_LE(sample.time_ns, after);
        EXPECT_EQ(sample.tid, static_cast<uint32_t>(sys::thread_id()));
        EXPECT_EQ(sample.period, 1u);
        touched.insert(page_of(sample.address));
    }
    EXPECT_EQ(touched.size(), kPages);
    munmap(pages, kPages * kPageBytes);
}

TEST_F(PageFaults, AnotherThreadIsNotSampled) {
    constexpr size_t kPages = 50;
    char* pages = fresh_pages(kPages);
    drain();
    std::thread([&] {
        for (size_t i = 0; i < kPages; ++i) pages[i * kPageBytes] = 1;
    }).join();
    for (const RawSample& sample : drain())
        EXPECT_GE(sample.address - reinterpret_cast<uintptr_t>(pages), kPages * kPageBytes);
    munmap(pages, kPages * kPageBytes);
}

TEST_F(PageFaults, WhatDoesNotFitIsCountedAsLost) {
    const size_t kPages = event.ring().capacity_bytes() / 80 * 3;
    char* pages = fresh_pages(kPages + 1);
    drain();
    for (size_t i = 0; i < kPages; ++i) pages[i * kPageBytes] = 1;
    const size_t kept = drain().size();
    pages[kPages * kPageBytes] = 1;    // the kernel writes the count before the next record that fits
    const size_t later = drain().size();
    EXPECT_GT(lost, 0u);
    EXPECT_GE(kept + later + lost, kPages + 1);
    munmap(pages, (kPages + 1) * kPageBytes);
}

// The source of samples on page faults instead of IBS, and on an invented list of threads.
class SampledThread : public testing::Test {
protected:
    void SetUp() override {
        files.files[task()] = "";
        const Status started = source.start(sys::now());
        if (started.error == EACCES || started.error == EPERM || started.error == ENOSYS)
            GTEST_SKIP() << "perf_event_open is not permitted here";
        ASSERT_TRUE(started.ok()) << started.what << ": " << strerror(started.error);
    }
    static std::string task() { return "/proc/self/task/" + std::to_string(sys::thread_id()); }
    bool is_sampled() {
        void* at = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        *static_cast<volatile char*>(at) = 1;
        bool seen = false;
        source.drain(sys::now(),
                     [&](const Sample& sample) { seen |= page_of(sample.address) == reinterpret_cast<uintptr_t>(at); });
        munmap(at, kPageBytes);
        return seen;
    }

    FakeFiles files;
    Topology topology;
    Counters counters;
    std::vector<IbsRing> rings = std::vector<IbsRing>(4);
    IbsSource source{files, topology, counters, rings, {}, page_faults()};
};

TEST_F(SampledThread, GoesOnWhenThreadsCanNoLongerBeListed) {
    EXPECT_TRUE(is_sampled());
    files.files.clear();    // chroot to a folder without /proc
    source.refresh(sys::now());
    EXPECT_TRUE(is_sampled());
}

TEST_F(SampledThread, EndsWhenItIsNoLongerListed) {
    files.files.clear();
    files.files["/proc/self/task/2147483647"] = "";
    source.refresh(sys::now());
    EXPECT_FALSE(is_sampled());
}

// That samples get fewer is for tests/rig/test_job to see: the kernel makes a sample of each event of its software
// events with this sample_type, whatever their period.
TEST_F(SampledThread, GoesOnWhetherANewPeriodIsTakenOrRefused) {
    EXPECT_TRUE(source.set_period(16));
    EXPECT_TRUE(is_sampled());
    EXPECT_FALSE(source.set_period(0));
    EXPECT_TRUE(is_sampled());
}

TEST(PerfEvent, AnUnknownPmuIsRefusedWithItsErrno) {
    PerfEventSettings settings = page_faults();
    settings.pmu_type = 0x7fffffff;
    PerfEvent event;
    const int error = event.open(settings, sys::thread_id());
    EXPECT_TRUE(error == -ENOENT || error == -EACCES || error == -EPERM || error == -ENOSYS) << error;
    EXPECT_FALSE(event.is_open());
}

TEST(PerfEvent, AThreadThatIsGoneIsEsrch) {
    int tid = 0;
    std::thread([&] { tid = sys::thread_id(); }).join();
    PerfEvent event;
    const int error = event.open(page_faults(), tid);
    if (error == -EACCES || error == -EPERM || error == -ENOSYS)
        GTEST_SKIP() << "perf_event_open is not permitted here";
    EXPECT_EQ(error, -ESRCH);
}

// Runs `check` in a process that may map nothing more.
template <typename Check>
void without_address_space(Check check) {
    const pid_t child = fork();
    if (child == 0) {
        const rlimit none{kPageBytes, kPageBytes};
        EXPECT_EQ(setrlimit(RLIMIT_AS, &none), 0);
        check();
        _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST_F(PageFaults, ARefusedRingIsToldFromARefusedEvent) {
    without_address_space([] {
        PerfEvent ring;
        EXPECT_EQ(ring.open(page_faults(), sys::thread_id()), -ENOMEM);
        EXPECT_TRUE(ring.ring_was_refused());
        PerfEventSettings unknown = page_faults();
        unknown.pmu_type = 0x7fffffff;
        EXPECT_LT(ring.open(unknown, sys::thread_id()), 0);
        EXPECT_FALSE(ring.ring_was_refused());
    });
}

TEST_F(PageFaults, TheSourceDoesNotBlameTheEventForItsRing) {
    without_address_space([] {
        FakeFiles files;
        files.files["/proc/self/task/" + std::to_string(sys::thread_id())] = "";
        const Topology topology;
        Counters counters;
        std::array<IbsRing, 1> rings;
        IbsSource source(files, topology, counters, rings, {}, page_faults());
        const Status started = source.start(sys::now());
        EXPECT_EQ(std::string(started.what), "mmap of a ring of ibs_op");
        EXPECT_EQ(started.error, ENOMEM);
        EXPECT_EQ(source.refused(), IbsSource::Refused::kRing);
    });
}

TEST(IbsReasons, ARefusedRingNamesTheLimit) {
    char text[160] = "mmap of a ring of ibs_op: EPERM";
    explain_ring_refusal(EPERM, text);
    EXPECT_NE(std::string(text).find("EPERM (locked memory: kernel.perf_event_mlock_kb"), std::string::npos) << text;
    char tight[40] = "mmap of a ring of ibs_op: ENOMEM";
    explain_ring_refusal(ENOMEM, tight);
    EXPECT_EQ(strnlen(tight, sizeof tight), sizeof tight - 1) << "cut, and ended";
}

TEST(IbsReasons, TheLatencyFilterIsForPmusThatHaveIt) {
    const IbsSettings settings{.ldlat_cycles = 600};
    EXPECT_EQ(ibs_event({.type = 11, .ldlat = true}, settings).config1, 600u);
    EXPECT_EQ(ibs_event({.type = 11}, settings).config1, 0u);
    FakeFiles files;
    files.files["/sys/bus/event_source/devices/ibs_op/type"] = "11\n";
    IbsPmu pmu;
    ASSERT_TRUE(probe_ibs(files, pmu).ok());
    EXPECT_FALSE(pmu.ldlat);
    files.files["/sys/bus/event_source/devices/ibs_op/format/ldlat"] = "config1:0-11\n";
    ASSERT_TRUE(probe_ibs(files, pmu).ok());
    EXPECT_TRUE(pmu.ldlat);
}

}    // namespace
}    // namespace pghot
