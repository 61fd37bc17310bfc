// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/base/topology.h"
#include "runtime/base/units.h"
#include "runtime/policy/move.h"
#include "runtime/policy/sample.h"

// Recording version 2: what a run saw and did, for replay, tuning and tests.
//
//   file   = head, record*
//   head   = magic "pghotrec", u32 version, u32 byte order mark 0x01020304, u64 start (ns of CLOCK_MONOTONIC)
//   record = u16 type, u16 zero, u32 bytes of payload, payload
//
// Integers are in the byte order of the mark, unaligned. A reader skips types that it does not know, and what follows
// the fields it knows in a payload: later versions add at the end. A file may end anywhere (the program was killed).
// Version 1 had zeros where moves and outcomes now say which way pages go, and zero there is promotion: it is read too.
namespace pghot {

inline constexpr char kRecordingMagic[8] = {'p', 'g', 'h', 'o', 't', 'r', 'e', 'c'};
inline constexpr uint32_t kRecordingVersion = 2;
inline constexpr uint32_t kOldestRecordingVersion = 1;
inline constexpr uint32_t kRecordingByteOrder = 0x01020304;
inline constexpr size_t kRecordingHeadBytes = 24;
inline constexpr size_t kRecordHeadBytes = 8;
inline constexpr size_t kRecordTextBytes = 255;    // longest name of a phase or mark; longer ones are cut

enum class RecordType : uint16_t {
    kTopology = 1,
    kSample = 2,
    kObject = 3,
    kPhase = 4,
    kMark = 5,
    kMove = 6,       // a plan
    kOutcome = 7,    // what became of some pages of a plan
};

// A large object or mapping with its placement, when it came or went.
struct ObjectRecord {
    uintptr_t address = 0;
    uint64_t bytes = 0;
    TimeNs time{};
    uint32_t heap_generation = 0;
    uint8_t placement = 0;    // as HeapExtent::placement
    bool gone = false;
};

// A phase of the program begins (lasts until the next), or a single moment is marked.
struct NamedMoment {
    TimeNs time{};
    uint64_t value = 0;         // the program's own number, such as an iteration
    std::string_view name{};    // read: points into the recording
};

// Where a recording goes. A plain function, as virtual calls would need the C++ runtime. False: the sink failed, the
// writer stops.
struct RecordingSink {
    bool (*write)(void* self, std::span<const std::byte> bytes) = nullptr;
    void* self = nullptr;
};

// Writes a recording through a fixed buffer. One owner thread (pghot-sampler). No allocation. A sink that fails ends
// the recording; the records from there on are counted as lost, what was written stays readable.
class RecordingWriter {
public:
    // `buffer` of any size (64 KiB and more make few writes) outlives the writer, as does the sink.
    RecordingWriter(std::span<std::byte> buffer, RecordingSink sink) : buffer_(buffer), sink_(sink) {}
    RecordingWriter(const RecordingWriter&) = delete;
    RecordingWriter& operator=(const RecordingWriter&) = delete;

    // First, once.
    void begin(TimeNs start);
    void write(const Topology& topology);
    void write(const Sample& sample);
    void write(const ObjectRecord& object);
    void write(RecordType phase_or_mark, const NamedMoment& moment);
    void write(const Move& move);
    void write(const MoveOutcome& outcome);
    // What is buffered goes to the sink. The owner calls it at the end, and when it wants the file to be up to date.
    void flush();

    bool failed() const { return failed_; }
    uint64_t records() const { return records_; }
    uint64_t lost() const { return lost_; }

private:
    bool open(RecordType type, size_t bytes);
    void put_bytes(std::span<const std::byte> bytes);
    template <typename T>
    void put(T value) {
        put_bytes(std::as_bytes(std::span<const T, 1>(&value, 1)));
    }

    std::span<std::byte> buffer_;
    RecordingSink sink_;
    size_t used_ = 0;
    bool failed_ = false;
    uint64_t records_ = 0;
    uint64_t lost_ = 0;
};

// One record, still in the recording's memory.
struct RecordView {
    uint16_t type = 0;
    std::span<const std::byte> payload{};
};

enum class RecordingState : uint8_t {
    kGood,
    kEnd,          // after the last whole record
    kTruncated,    // the file ends inside a record, which is dropped
    kNotARecording,
    kOtherVersion,
    kOtherByteOrder,
};

// Reads a recording from memory. Never reads past the end, whatever the bytes are.
class RecordingReader {
public:
    explicit RecordingReader(std::span<const std::byte> recording);

    // kGood while there may be a next record.
    RecordingState state() const { return state_; }
    TimeNs start() const { return start_; }
    // False at the end, then state() says why. Unknown types are handed out too.
    bool next(RecordView& record);

private:
    std::span<const std::byte> rest_;
    RecordingState state_ = RecordingState::kGood;
    TimeNs start_{};
};

// False when the record is of another type, too short, or holds a value that does not exist; `out` is then unchanged or
// partly written.
bool decode(const RecordView& record, Sample& out);
bool decode(const RecordView& record, ObjectRecord& out);
bool decode(const RecordView& record, NamedMoment& out);
bool decode(const RecordView& record, Move& out);
bool decode(const RecordView& record, MoveOutcome& out);
bool decode(const RecordView& record, Topology& out);

}    // namespace pghot
