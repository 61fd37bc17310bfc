// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/perf_event.h>

#include <cstdint>

#include "runtime/kernel/perf_ring.h"

namespace pghot {

// What to open: an event of one thread (any CPU, not inherited: threads exist before we start, and inheriting events
// make every pthread_create of the program 2 to 20 times dearer).
struct PerfEventSettings {
    uint32_t pmu_type = 0;
    uint64_t config = 0;
    uint64_t config1 = 0;
    uint64_t config2 = 0;
    uint64_t sample_period = 0;
    bool exclude_kernel = false;
};

// The sample_type of every event we open, and with it the layout that runtime/sources/sample_decoder.cc reads.
// DATA_PAGE_SIZE (5.11) tells huge pages apart; it costs one walk of the page table in the interrupt.
inline constexpr uint64_t kSampleType = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |
                                        PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_DATA_SRC |
                                        PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_WEIGHT_STRUCT;

// One open event with its mapped ring. Owned by the sampler; the descriptor lives in the sampler's table.
class PerfEvent {
public:
    PerfEvent() = default;
    ~PerfEvent() { close(); }
    PerfEvent(PerfEvent&& other) noexcept;
    PerfEvent& operator=(PerfEvent&& other) noexcept;
    PerfEvent(const PerfEvent&) = delete;
    PerfEvent& operator=(const PerfEvent&) = delete;

    // Opens and maps; sampling runs at once. 0 or -errno (EACCES: perf_event_paranoid; EMFILE; of the ring EPERM:
    // locked memory, ENOMEM: address space). Tries 8 data pages (32 KiB, about 400 samples), then fewer where the
    // locked-memory allowance is used up.
    int open(const PerfEventSettings& settings, int tid);
    void close();
    bool is_open() const { return fd_ >= 0; }
    // Which of the two the last open() failed at: mapping the ring, not opening the event.
    bool ring_was_refused() const { return ring_was_refused_; }
    // Samples from now on every `period` events; what was counted towards the next one is forgotten. 0 or -errno.
    int set_period(uint64_t period);
    PerfRing& ring() { return ring_; }

private:
    int map(int fd);

    int fd_ = -1;
    void* map_ = nullptr;
    size_t map_bytes_ = 0;
    bool ring_was_refused_ = false;
    PerfRing ring_;
};

}    // namespace pghot
