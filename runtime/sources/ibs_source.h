// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "runtime/base/counters.h"
#include "runtime/kernel/filesystem.h"
#include "runtime/kernel/perf_event.h"
#include "runtime/sources/source.h"

namespace pghot {

struct Topology;

// What sysfs says of the IBS op PMU.
struct IbsPmu {
    uint32_t type = 0;
    bool l3missonly = false;    // Zen 4 and later
    bool swfilt = false;        // 6.14: exclude_kernel is possible, and with it sampling without privilege
    bool ldlat = false;         // Zen 5 and 6.15: loads below a latency are left out by the hardware
};
// ENOENT: this machine or kernel has no IBS (virtual machines have none).
Status probe_ibs(FileSystem& files, IbsPmu& out);

// Appends to `text` (zero-terminated) what a person can do about a refused perf_event_open.
void explain_ibs_refusal(FileSystem& files, int error, bool swfilt, std::span<char> text);
// The same about a refused ring.
void explain_ring_refusal(int error, std::span<char> text);

struct IbsSettings {
    uint64_t period = 10000;    // dispatched ops between tagged ops
    bool l3missonly = true;
    uint32_t ldlat_cycles = 0;    // loads that took no longer, and stores, are not sampled; 0: all are
};
PerfEventSettings ibs_event(const IbsPmu& pmu, const IbsSettings& settings);

// One thread's ring.
struct IbsRing {
    int tid = 0;
    bool seen = false;      // in the last listing of the threads
    bool exited = false;    // its EXIT record was read
    PerfEvent event;
};

// AMD IBS op samples of every thread of the process, one ring a thread. Threads are found by listing /proc/self/task
// (start and refresh) and by the FORK records of their creators, which come sooner.
class IbsSource final : public SampleSource {
public:
    // `rings` bounds how many threads are sampled at once (PGHOT_RINGS); threads beyond are counted as rings_failed
    // and taken up when others exit. `own_tids` are our threads, never sampled. All references outlive the source.
    IbsSource(FileSystem& files, const Topology& topology, Counters& counters, std::span<IbsRing> rings,
              std::span<const int> own_tids, const PerfEventSettings& event);

    Status start(TimeNs now) override;
    // Why start failed.
    enum class Refused : uint8_t { kNothing, kThreadList, kEvent, kRing };
    Refused refused() const { return refused_; }
    unsigned drain(TimeNs now, FunctionRef<void(const Sample&)> use) override;
    void refresh(TimeNs now) override;
    void stop() override;
    // Of every ring, and of those opened later. Operations, a multiple of 16. False: the kernel refuses, and what was
    // opened or will be keeps the period it had.
    bool set_period(uint64_t period);

private:
    int open(int tid);
    IbsRing* find(int tid);
    void use_record(IbsRing& ring, const PerfRecord& record, FunctionRef<void(const Sample&)> use);
    void use_sample(const PerfRecord& record, FunctionRef<void(const Sample&)> use);

    FileSystem& files_;
    const Topology& topology_;
    Counters& counters_;
    std::span<IbsRing> rings_;
    std::span<const int> own_tids_;
    PerfEventSettings event_;
    size_t used_ = 0;       // rings_[0, used_) may be open
    int last_error_ = 0;    // of the last ring that could not be opened
    Refused refused_ = Refused::kNothing;
    int listing_error_ = 0;    // of the last listing of the threads
    int born_ = 0;             // a thread announced by a FORK record, to be opened after the drain
};

}    // namespace pghot
