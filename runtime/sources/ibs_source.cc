// SPDX-License-Identifier: Apache-2.0
#include "runtime/sources/ibs_source.h"

#include <fmt/compile.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/base/topology.h"
#include "runtime/kernel/text.h"
#include "runtime/sources/sample_decoder.h"

namespace pghot {
namespace {

// config bits of the ibs_op PMU (its format files): cnt_ctl counts dispatched ops instead of cycles, whose start value
// the hardware randomises; l3missonly drops ops served by a cache before they cost an interrupt.
constexpr uint64_t kCntCtl = 1ull << 19;
constexpr uint64_t kL3MissOnly = 1ull << 16;
constexpr uint64_t kSwFilt = 1;    // config2

bool exists(FileSystem& files, const char* path) {
    char byte[32];
    return files.read(path, byte) > 0;
}

// Number fields of non-sample records: FORK and EXIT are {pid, ppid, tid, ptid, time}, LOST {id, lost}.
template <typename Number>
Number field(const PerfRecord& record, size_t offset) {
    Number value = 0;
    if (record.body.size() >= offset + sizeof value) std::memcpy(&value, record.body.data() + offset, sizeof value);
    return value;
}

}    // namespace

Status probe_ibs(FileSystem& files, IbsPmu& out) {
    char buffer[32];
    std::string_view line = files.first_line("/sys/bus/event_source/devices/ibs_op/type", buffer);
    if (!take_number(line, out.type)) return {"no ibs_op PMU in /sys/bus/event_source/devices", ENOENT};
    out.l3missonly = exists(files, "/sys/bus/event_source/devices/ibs_op/format/l3missonly");
    out.swfilt = exists(files, "/sys/bus/event_source/devices/ibs_op/format/swfilt");
    out.ldlat = exists(files, "/sys/bus/event_source/devices/ibs_op/format/ldlat");
    return {};
}

void explain_ibs_refusal(FileSystem& files, int error, bool swfilt, std::span<char> text) {
    const size_t used = strnlen(text.data(), text.size());
    char* const end = text.data() + used;
    const size_t room = text.size() - used - 1;
    char buffer[32];
    const std::string_view paranoid = files.first_line("/proc/sys/kernel/perf_event_paranoid", buffer);
    const std::string_view wanted = swfilt ? "2" : "1";
    char* after = end;
    if (error == EACCES || error == EPERM)
        after =
            fmt::format_to_n(end, room,
                             FMT_COMPILE(" (kernel.perf_event_paranoid is {}; sampling without privilege needs {} or "
                                         "lower, or CAP_PERFMON)"),
                             paranoid, wanted)
                .out;
    if (error == EMFILE)
        after = fmt::format_to_n(end, room, FMT_COMPILE(" (the limit of open files, ulimit -n, is too low)")).out;
    if (error == EINVAL)
        after = fmt::format_to_n(end, room, FMT_COMPILE(" (sampling single threads needs Linux 6.2 or later)")).out;
    *after = '\0';
}

void explain_ring_refusal(int error, std::span<char> text) {
    const std::string_view advice = error == EPERM
                                        ? " (locked memory: kernel.perf_event_mlock_kb and ulimit -l leave no room)"
                                        : " (no memory or address space for 8 KiB)";
    const size_t used = strnlen(text.data(), text.size());
    char* const end = text.data() + used;
    *fmt::format_to_n(end, text.size() - used - 1, FMT_COMPILE("{}"), advice).out = '\0';
}

PerfEventSettings ibs_event(const IbsPmu& pmu, const IbsSettings& settings) {
    PerfEventSettings event;
    event.pmu_type = pmu.type;
    event.config = kCntCtl | (settings.l3missonly && pmu.l3missonly ? kL3MissOnly : 0);
    event.config1 = pmu.ldlat ? settings.ldlat_cycles : 0;    // format/ldlat: config1:0-11
    event.config2 = pmu.swfilt ? kSwFilt : 0;
    event.exclude_kernel = pmu.swfilt;    // refused without swfilt; kernel samples are then dropped by address
    event.sample_period = settings.period;
    return event;
}

IbsSource::IbsSource(FileSystem& files, const Topology& topology, Counters& counters, std::span<IbsRing> rings,
                     std::span<const int> own_tids, const PerfEventSettings& event)
    : files_(files), topology_(topology), counters_(counters), rings_(rings), own_tids_(own_tids), event_(event) {}

Status IbsSource::start(TimeNs now) {
    refresh(now);
    if (used_ > 0) return {};
    if (listing_error_ != 0) {
        refused_ = Refused::kThreadList;
        return {"the list of threads, /proc/self/task", -listing_error_};
    }
    if (refused_ == Refused::kRing) return {"mmap of a ring of ibs_op", -last_error_};
    return {"perf_event_open of ibs_op", last_error_ != 0 ? -last_error_ : ESRCH};
}

IbsRing* IbsSource::find(int tid) {
    for (IbsRing& ring : rings_.first(used_))
        if (ring.event.is_open() && ring.tid == tid) return &ring;
    return nullptr;
}

int IbsSource::open(int tid) {
    IbsRing* free = nullptr;
    for (IbsRing& ring : rings_.first(std::min(used_ + 1, rings_.size())))
        if (!ring.event.is_open()) free = &ring;
    if (free == nullptr) return -EMFILE;
    const int error = free->event.open(event_, tid);
    if (error != 0) {
        refused_ = free->event.ring_was_refused() ? Refused::kRing : Refused::kEvent;
        return error;
    }
    free->tid = tid;
    free->seen = true;
    free->exited = false;
    used_ = std::max(used_, static_cast<size_t>(free - rings_.data()) + 1);
    counters_.add(Counter::rings_opened);
    return 0;
}

void IbsSource::refresh(TimeNs) {
    for (IbsRing& ring : rings_.first(used_)) ring.seen = false;
    uint64_t failed = 0;
    listing_error_ = files_.list("/proc/self/task", [&](std::string_view name) {
        int tid = 0;
        if (!take_number(name, tid)) return;
        if (std::find(own_tids_.begin(), own_tids_.end(), tid) != own_tids_.end()) return;
        if (IbsRing* ring = find(tid)) {
            ring->seen = true;
            return;
        }
        const int error = open(tid);
        if (error == 0 || error == -ESRCH) return;    // ESRCH: it ended meanwhile
        last_error_ = error;
        ++failed;
    });
    // No /proc (the program called chroot), or no descriptor to spare: who is known stays, births and ends are in the
    // rings too.
    if (listing_error_ != 0) return;
    counters_.set(Counter::rings_failed, failed);
    for (IbsRing& ring : rings_.first(used_))
        if (ring.event.is_open() && (ring.exited || !ring.seen)) ring.event.close();
}

unsigned IbsSource::drain(TimeNs, FunctionRef<void(const Sample&)> use) {
    unsigned fullest = 0;
    born_ = 0;
    for (IbsRing& ring : rings_.first(used_)) {
        if (!ring.event.is_open()) continue;
        const size_t unread = ring.event.ring().drain([&](const PerfRecord& record) { use_record(ring, record, use); });
        fullest = std::max(fullest, static_cast<unsigned>(unread * 100 / ring.event.ring().capacity_bytes()));
        if (ring.exited) ring.event.close();
    }
    if (born_ != 0 && find(born_) == nullptr) open(born_);    // more than one at once: the next refresh finds them
    return fullest;
}

void IbsSource::use_record(IbsRing& ring, const PerfRecord& record, FunctionRef<void(const Sample&)> use) {
    switch (record.type) {
        case PERF_RECORD_SAMPLE:
            use_sample(record, use);
            break;
        case PERF_RECORD_LOST:
            counters_.add(Counter::lost_samples, field<uint64_t>(record, 8));
            break;
        case PERF_RECORD_LOST_SAMPLES:
            counters_.add(Counter::lost_samples, field<uint64_t>(record, 0));
            break;
        case PERF_RECORD_THROTTLE:
            counters_.add(Counter::throttle_events);
            break;
        case PERF_RECORD_FORK:
            // pid == ppid: a thread, not a child process.
            if (field<uint32_t>(record, 0) == field<uint32_t>(record, 4)) born_ = field<int>(record, 8);
            break;
        case PERF_RECORD_EXIT:
            ring.exited |= field<int>(record, 8) == ring.tid;
            break;
        default:
            break;
    }
}

void IbsSource::use_sample(const PerfRecord& record, FunctionRef<void(const Sample&)> use) {
    RawSample raw;
    counters_.add(Counter::hwhint_total_events);
    if (!decode_sample(record, raw) || !is_user_address(raw.address)) {
        counters_.add(Counter::hwhint_unusable_events);
        return;
    }
    use(to_sample(raw, topology_, SampleOrigin::kIbs));
}

bool IbsSource::set_period(uint64_t period) {
    // What is refused for one is refused for all.
    for (IbsRing& ring : rings_.first(used_))
        if (ring.event.is_open() && ring.event.set_period(period) != 0) return false;
    event_.sample_period = period;
    return true;
}

void IbsSource::stop() {
    for (IbsRing& ring : rings_.first(used_)) ring.event.close();
    used_ = 0;
}

}    // namespace pghot
