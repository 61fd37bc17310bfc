// SPDX-License-Identifier: Apache-2.0
#include "runtime/sources/replay.h"

#include <algorithm>
#include <cerrno>

namespace pghot {
namespace {

bool is_later(const Sample& a, const Sample& b) { return a.time > b.time; }    // heap functions keep the largest first

}    // namespace

ReplaySource::ReplaySource(std::span<const std::byte> recording, std::span<Sample> order)
    : reader_(recording), order_(order) {}

Status ReplaySource::start(TimeNs now) {
    if (reader_.state() == RecordingState::kNotARecording) return {"replay: not a recording", EINVAL};
    if (reader_.state() == RecordingState::kOtherVersion) return {"replay: recording of another version", EINVAL};
    if (reader_.state() == RecordingState::kOtherByteOrder) return {"replay: recording of another byte order", EINVAL};
    if (order_.empty()) return {"replay: no room to order samples", EINVAL};
    shift_ns_ = now.ns - reader_.start().ns;
    return {};
}

void ReplaySource::fill() {
    RecordView record;
    while (count_ < order_.size() && reader_.next(record)) {
        Sample& sample = order_[count_];
        if (!decode(record, sample)) continue;
        sample.time = std::max(sample.time, reader_.start());    // was in a ring already when the recording began
        ++count_;
        std::push_heap(order_.begin(), order_.begin() + static_cast<ptrdiff_t>(count_), is_later);
    }
}

bool ReplaySource::next_due(TimeNs& due) {
    if (finished_) return false;
    fill();
    finished_ = count_ == 0;
    if (finished_) return false;
    due = std::max(order_[0].time, newest_) + shift_ns_;
    return true;
}

unsigned ReplaySource::drain(TimeNs now, FunctionRef<void(const Sample&)> use) {
    TimeNs due;
    while (next_due(due) && due <= now) {
        std::pop_heap(order_.begin(), order_.begin() + static_cast<ptrdiff_t>(count_), is_later);
        Sample sample = order_[--count_];
        if (sample.time < newest_) ++out_of_order_;
        newest_ = std::max(newest_, sample.time);
        sample.time = due;
        use(sample);
    }
    return 0;
}

}    // namespace pghot
