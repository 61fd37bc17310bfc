// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/sources/recording.h"
#include "runtime/sources/source.h"

namespace pghot {

// Samples of a recording as if they came now, in the order of time. A recording holds them in the order of draining,
// ring after ring; a buffer of samples given by the caller puts them right as long as none is later than that many
// others. Used by the sampler thread, by tests and by the offline commands.
class ReplaySource final : public SampleSource {
public:
    // `recording` (a mapped file) and `order` (as many samples as a drain may hold; 4096 take 128 KiB) outlive the
    // source.
    ReplaySource(std::span<const std::byte> recording, std::span<Sample> order);

    // Sets the recording's start to `now`: a sample recorded 5 s after the start comes 5 s after this. EINVAL: not a
    // recording that can be read here. Starting at start_of_recording() replays on the recorded clock.
    Status start(TimeNs now) override;
    TimeNs start_of_recording() const { return reader_.start(); }
    // Hands on the samples that are due. Answers 0: nothing is ever lost for want of draining.
    unsigned drain(TimeNs now, FunctionRef<void(const Sample&)> use) override;
    void refresh(TimeNs) override {}
    void stop() override { finished_ = true; }

    // When the next sample is due, on the clock of `start`. False at the end of the recording.
    bool next_due(TimeNs& due);
    bool finished() const { return finished_; }
    // Samples that were older than one already handed on, and are handed on with that one's time.
    uint64_t out_of_order() const { return out_of_order_; }

private:
    void fill();

    RecordingReader reader_;
    std::span<Sample> order_;    // a heap, oldest first
    size_t count_ = 0;
    uint64_t shift_ns_ = 0;    // recorded time + shift = time now, modulo 2^64
    TimeNs newest_{};          // of those handed on, recorded time
    bool finished_ = false;
    uint64_t out_of_order_ = 0;
};

}    // namespace pghot
