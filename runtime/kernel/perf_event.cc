// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel/perf_event.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "runtime/base/units.h"
#include "runtime/kernel/answer.h"
#include "runtime/kernel/syscalls.h"

namespace pghot {
namespace {

constexpr size_t kMostDataPages = 8;

perf_event_attr make_attributes(const PerfEventSettings& settings) {
    perf_event_attr attributes{};
    attributes.size = sizeof attributes;
    attributes.type = settings.pmu_type;
    attributes.config = settings.config;
    attributes.config1 = settings.config1;
    attributes.config2 = settings.config2;
    attributes.sample_period = settings.sample_period;
    attributes.sample_type = kSampleType;
    attributes.exclude_kernel = settings.exclude_kernel;
    attributes.task = 1;    // EXIT retires a ring, FORK tells of a new thread
    attributes.sample_id_all = 1;
    attributes.use_clockid = 1;    // the clock that the rest of the runtime reads
    attributes.clockid = CLOCK_MONOTONIC;
    attributes.watermark = 1;    // we drain by time; never wake anybody up
    attributes.wakeup_watermark = ~0U;
    return attributes;
}

}    // namespace

PerfEvent::PerfEvent(PerfEvent&& other) noexcept { *this = std::move(other); }

PerfEvent& PerfEvent::operator=(PerfEvent&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(map_, other.map_);
    std::swap(map_bytes_, other.map_bytes_);
    std::swap(ring_was_refused_, other.ring_was_refused_);
    std::swap(ring_, other.ring_);
    return *this;
}

int PerfEvent::open(const PerfEventSettings& settings, int tid) {
    close();
    ring_was_refused_ = false;
    const int fd = sys::perf_event_open(make_attributes(settings), tid, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0) return fd;
    const int error = map(fd);
    ring_was_refused_ = error != 0;
    if (error != 0) {
        ::close(fd);
        return error;
    }
    fd_ = fd;
    return 0;
}

int PerfEvent::map(int fd) {
    int error = 0;
    for (size_t data_pages = kMostDataPages; data_pages > 0; data_pages /= 2) {
        const size_t bytes = (1 + data_pages) * kPageBytes;
        void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (at == MAP_FAILED) {
            error = -errno;
            continue;
        }
        map_ = at;
        map_bytes_ = bytes;
        ring_ = PerfRing(static_cast<perf_event_mmap_page*>(at),
                         {static_cast<std::byte*>(at) + kPageBytes, data_pages * kPageBytes});
        return 0;
    }
    refused_calls.note(KernelCall::mmap, -error);
    return error;
}

int PerfEvent::set_period(uint64_t period) {
    return static_cast<int>(answer(KernelCall::ioctl, ioctl(fd_, PERF_EVENT_IOC_PERIOD, &period)));
}

void PerfEvent::close() {
    if (map_ != nullptr) answer(KernelCall::munmap, munmap(map_, map_bytes_));
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
    map_ = nullptr;
    ring_ = PerfRing{};
}

}    // namespace pghot
