// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: any bytes are read as a recording without reading past their end; what decodes is within its ranges and
// survives being written and read again; replay hands samples on in the order of time.
#include "runtime/sources/recording.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "runtime/sources/replay.h"

namespace pghot {
namespace {

using Bytes = std::vector<std::byte>;

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
}

bool append(void* self, std::span<const std::byte> bytes) {
    auto& file = *static_cast<Bytes*>(self);
    file.insert(file.end(), bytes.begin(), bytes.end());
    return true;
}

// Copied to memory of exactly its size, so that a sanitizer sees the first byte beyond.
Bytes exact(std::span<const std::byte> bytes) {
    Bytes copy(bytes.begin(), bytes.end());
    copy.shrink_to_fit();
    return copy;
}

template <typename Record>
bool copy_if(const RecordView& view, RecordingWriter& writer) {
    auto record = std::make_unique<Record>();
    if (!decode(view, *record)) return false;
    writer.write(*record);
    return true;
}

bool copy_moment(const RecordView& view, RecordingWriter& writer) {
    NamedMoment moment;
    if (!decode(view, moment)) return false;
    writer.write(static_cast<RecordType>(view.type), moment);
    return true;
}

size_t copy_records(const Bytes& recording, Bytes& copy) {
    RecordingReader reader(recording);
    if (reader.state() != RecordingState::kGood) return 0;
    Bytes buffer(64);
    RecordingWriter writer(buffer, {append, &copy});
    writer.begin(reader.start());
    RecordView view;
    size_t copied = 0;
    while (reader.next(view)) {
        const Bytes payload = exact(view.payload);
        const RecordView own{.type = view.type, .payload = payload};
        copied += copy_if<Sample>(own, writer) || copy_if<ObjectRecord>(own, writer) || copy_if<Move>(own, writer) ||
                  copy_if<MoveOutcome>(own, writer) || copy_if<Topology>(own, writer) || copy_moment(own, writer);
    }
    require(reader.state() == RecordingState::kEnd || reader.state() == RecordingState::kTruncated, "the reader stops");
    writer.flush();
    return copied;
}

void check_replay(const Bytes& recording) {
    std::vector<Sample> order(3);
    ReplaySource source(recording, order);
    if (!source.start(source.start_of_recording()).ok()) return;
    TimeNs newest = source.start_of_recording();
    const auto check = [&](const Sample& sample) {
        require(sample.time >= newest, "replay goes back in time");
        newest = sample.time;
    };
    source.drain(TimeNs{~0ull}, check);
    require(source.finished(), "replay does not end");
}

}    // namespace
}    // namespace pghot

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const pghot::Bytes input = pghot::exact({reinterpret_cast<const std::byte*>(data), size});
    pghot::Bytes copy;
    pghot::Bytes copy_of_copy;
    const size_t records = pghot::copy_records(input, copy);
    pghot::require(pghot::copy_records(copy, copy_of_copy) == records, "a written record cannot be read");
    pghot::require(copy == copy_of_copy, "a record changes when written and read");
    pghot::check_replay(input);
    return 0;
}
