// SPDX-License-Identifier: Apache-2.0
#include "runtime/sources/recording.h"

#include <algorithm>
#include <cstring>

namespace pghot {
namespace {

// Payload sizes, without the text of phases and marks and the tables of a topology.
constexpr size_t kSampleBytes = 32;
constexpr size_t kObjectBytes = 32;
constexpr size_t kMomentBytes = 16;
constexpr size_t kMoveBytes = 32;
constexpr size_t kOutcomeBytes = 32;
constexpr size_t kTopologyBytes = 8;
constexpr size_t kNodeBytes = 16;

constexpr uint8_t kSampleStore = 1;
constexpr uint8_t kSampleHuge = 2;
constexpr uint8_t kSampleRemote = 4;
constexpr uint8_t kNodeMemory = 1;
constexpr uint8_t kNodeCpus = 2;
constexpr uint8_t kNodeAllowed = 4;
constexpr uint8_t kNodeLower = 8;

// Takes fields from a payload in order; after the first that is not there, `good` stays false and zeros come.
class Fields {
public:
    explicit Fields(std::span<const std::byte> bytes) : bytes_(bytes) {}

    template <typename T>
    T get() {
        T value{};
        if (bytes_.size() < sizeof(T)) {
            good_ = false;
            return value;
        }
        std::memcpy(&value, bytes_.data(), sizeof(T));
        bytes_ = bytes_.subspan(sizeof(T));
        return value;
    }
    // An enum whose last value is `last`.
    template <typename E>
    E get_enum(E last) {
        const auto value = get<uint8_t>();
        good_ = good_ && value <= static_cast<uint8_t>(last);
        return good_ ? static_cast<E>(value) : E{};
    }
    NodeId get_node() {
        const auto node = get<int16_t>();
        good_ = good_ && node >= -1 && node < static_cast<int>(kMaxNodes);
        return good_ ? NodeId{node} : kNoNode;
    }
    std::string_view text(size_t bytes) {
        if (bytes_.size() < bytes) {
            good_ = false;
            return {};
        }
        return {reinterpret_cast<const char*>(bytes_.data()), bytes};
    }
    bool good() const { return good_; }
    void require(bool holds) { good_ = good_ && holds; }

private:
    std::span<const std::byte> bytes_;
    bool good_ = true;
};

bool is_type(const RecordView& record, RecordType type) { return record.type == static_cast<uint16_t>(type); }

size_t topology_bytes(size_t nodes, size_t cpus) {
    return kTopologyBytes + nodes * kNodeBytes + nodes * nodes + cpus * sizeof(int16_t);
}

uint8_t flags_of(const Node& node) {
    return static_cast<uint8_t>((node.online_memory ? kNodeMemory : 0) | (node.has_cpus ? kNodeCpus : 0) |
                                (node.allowed ? kNodeAllowed : 0) | (node.lower_tier ? kNodeLower : 0));
}

Node get_node_entry(Fields& fields) {
    Node node;
    const auto flags = fields.get<uint8_t>();
    fields.get<uint8_t>();
    node.memory_tier = fields.get<int16_t>();
    node.read_latency_ns = fields.get<uint32_t>();
    node.total_bytes = fields.get<uint64_t>();
    node.online_memory = (flags & kNodeMemory) != 0;
    node.has_cpus = (flags & kNodeCpus) != 0;
    node.allowed = (flags & kNodeAllowed) != 0;
    node.lower_tier = (flags & kNodeLower) != 0;
    return node;
}

}    // namespace

// ---- writing

void RecordingWriter::begin(TimeNs start) {
    put_bytes(std::as_bytes(std::span(kRecordingMagic)));
    put(kRecordingVersion);
    put(kRecordingByteOrder);
    put(start.ns);
}

// The buffer is a pipe: a record may be longer than it, and the sink may get it in pieces.
void RecordingWriter::put_bytes(std::span<const std::byte> bytes) {
    while (!bytes.empty() && !failed_) {
        if (used_ == buffer_.size()) flush();
        if (used_ == buffer_.size()) {
            failed_ = true;    // no buffer at all
            return;
        }
        const size_t count = std::min(bytes.size(), buffer_.size() - used_);
        std::memcpy(buffer_.data() + used_, bytes.data(), count);
        used_ += count;
        bytes = bytes.subspan(count);
    }
}

void RecordingWriter::flush() {
    if (failed_ || used_ == 0) return;
    failed_ = !sink_.write(sink_.self, buffer_.first(used_));
    used_ = 0;
}

bool RecordingWriter::open(RecordType type, size_t bytes) {
    if (failed_) {
        ++lost_;
        return false;
    }
    put(static_cast<uint16_t>(type));
    put(uint16_t{0});
    put(static_cast<uint32_t>(bytes));
    ++records_;
    return true;
}

void RecordingWriter::write(const Sample& sample) {
    if (!open(RecordType::kSample, kSampleBytes)) return;
    put(uint64_t{sample.address});
    put(sample.time.ns);
    put(sample.tid);
    put(sample.latency_cycles);
    put(sample.cpu);
    put(sample.node.value);
    put(static_cast<uint8_t>(sample.served_by));
    put(static_cast<uint8_t>(sample.origin));
    put(static_cast<uint8_t>((sample.store ? kSampleStore : 0) | (sample.huge ? kSampleHuge : 0) |
                             (sample.remote ? kSampleRemote : 0)));
    put(uint8_t{0});
}

void RecordingWriter::write(const ObjectRecord& object) {
    if (!open(RecordType::kObject, kObjectBytes)) return;
    put(uint64_t{object.address});
    put(object.bytes);
    put(object.time.ns);
    put(object.heap_generation);
    put(object.placement);
    put(static_cast<uint8_t>(object.gone));
    put(uint16_t{0});
}

void RecordingWriter::write(RecordType phase_or_mark, const NamedMoment& moment) {
    const std::string_view name = moment.name.substr(0, kRecordTextBytes);
    if (!open(phase_or_mark, kMomentBytes + 1 + name.size())) return;
    put(moment.time.ns);
    put(moment.value);
    put(static_cast<uint8_t>(name.size()));
    put_bytes(std::as_bytes(std::span(name)));
}

void RecordingWriter::write(const Move& move) {
    if (!open(RecordType::kMove, kMoveBytes)) return;
    put(uint64_t{move.address});
    put(move.planned.ns);
    put(move.pages);
    put(move.heap_generation);
    put(move.target.value);
    put(static_cast<uint8_t>(move.rule));
    put(static_cast<uint8_t>(move.kind));
    put(static_cast<int16_t>(move.from.value + 1));    // so that 0, as in version 1, is no node
    put(uint16_t{0});
}

void RecordingWriter::write(const MoveOutcome& outcome) {
    if (!open(RecordType::kOutcome, kOutcomeBytes)) return;
    put(uint64_t{outcome.address});
    put(outcome.time.ns);
    put(outcome.pages);
    put(outcome.node.value);
    put(outcome.target.value);
    put(static_cast<uint8_t>(outcome.outcome));
    put(static_cast<uint8_t>(outcome.kind));
    put(uint16_t{0});
    put(uint32_t{0});
}

void RecordingWriter::write(const Topology& topology) {
    const size_t nodes = topology.node_count;
    const size_t cpus = topology.cpu_count;
    if (!open(RecordType::kTopology, topology_bytes(nodes, cpus))) return;
    put(topology.node_count);
    put(topology.cpu_count);
    put(static_cast<uint8_t>(topology.evidence));
    put(uint8_t{0});
    put(uint16_t{0});
    for (size_t i = 0; i < nodes; ++i) {
        const Node& node = topology.nodes[i];
        put(flags_of(node));
        put(uint8_t{0});
        put(node.memory_tier);
        put(node.read_latency_ns);
        put(node.total_bytes);
    }
    for (size_t i = 0; i < nodes; ++i) put_bytes(std::as_bytes(std::span(topology.distance[i]).first(nodes)));
    put_bytes(std::as_bytes(std::span(topology.node_of_cpu).first(cpus)));
}

// ---- reading

RecordingReader::RecordingReader(std::span<const std::byte> recording) : rest_(recording) {
    Fields fields(recording);
    char magic[sizeof kRecordingMagic];
    for (char& c : magic) c = fields.get<char>();
    const auto version = fields.get<uint32_t>();
    const auto byte_order = fields.get<uint32_t>();
    start_ = TimeNs{fields.get<uint64_t>()};
    if (!fields.good() || std::memcmp(magic, kRecordingMagic, sizeof magic) != 0) {
        state_ = RecordingState::kNotARecording;
    } else if (byte_order != kRecordingByteOrder) {
        state_ = RecordingState::kOtherByteOrder;
    } else if (version < kOldestRecordingVersion || version > kRecordingVersion) {
        state_ = RecordingState::kOtherVersion;
    } else {
        rest_ = recording.subspan(kRecordingHeadBytes);
    }
}

bool RecordingReader::next(RecordView& record) {
    if (state_ != RecordingState::kGood) return false;
    if (rest_.empty()) {
        state_ = RecordingState::kEnd;
        return false;
    }
    Fields fields(rest_);
    const auto type = fields.get<uint16_t>();
    fields.get<uint16_t>();
    const auto bytes = fields.get<uint32_t>();
    if (!fields.good() || rest_.size() - kRecordHeadBytes < bytes) {
        state_ = RecordingState::kTruncated;
        return false;
    }
    record = {.type = type, .payload = rest_.subspan(kRecordHeadBytes, bytes)};
    rest_ = rest_.subspan(kRecordHeadBytes + bytes);
    return true;
}

bool decode(const RecordView& record, Sample& out) {
    if (!is_type(record, RecordType::kSample)) return false;
    Fields fields(record.payload);
    out.address = static_cast<uintptr_t>(fields.get<uint64_t>());
    out.time.ns = fields.get<uint64_t>();
    out.tid = fields.get<uint32_t>();
    out.latency_cycles = fields.get<uint32_t>();
    out.cpu = fields.get<uint16_t>();
    out.node = fields.get_node();
    out.served_by = fields.get_enum(ServedBy::kExtMem);
    out.origin = fields.get_enum(SampleOrigin::kHintFault);
    const auto flags = fields.get<uint8_t>();
    out.store = (flags & kSampleStore) != 0;
    out.huge = (flags & kSampleHuge) != 0;
    out.remote = (flags & kSampleRemote) != 0;
    fields.get<uint8_t>();
    return fields.good();
}

bool decode(const RecordView& record, ObjectRecord& out) {
    if (!is_type(record, RecordType::kObject)) return false;
    Fields fields(record.payload);
    out.address = static_cast<uintptr_t>(fields.get<uint64_t>());
    out.bytes = fields.get<uint64_t>();
    out.time.ns = fields.get<uint64_t>();
    out.heap_generation = fields.get<uint32_t>();
    out.placement = fields.get<uint8_t>();
    out.gone = (fields.get<uint8_t>() & 1) != 0;
    fields.get<uint16_t>();
    return fields.good();
}

bool decode(const RecordView& record, NamedMoment& out) {
    if (!is_type(record, RecordType::kPhase) && !is_type(record, RecordType::kMark)) return false;
    Fields fields(record.payload);
    out.time.ns = fields.get<uint64_t>();
    out.value = fields.get<uint64_t>();
    out.name = fields.text(fields.get<uint8_t>());
    return fields.good();
}

bool decode(const RecordView& record, Move& out) {
    if (!is_type(record, RecordType::kMove)) return false;
    Fields fields(record.payload);
    out.address = static_cast<uintptr_t>(fields.get<uint64_t>());
    out.planned.ns = fields.get<uint64_t>();
    out.pages = fields.get<uint32_t>();
    out.heap_generation = fields.get<uint32_t>();
    out.target = fields.get_node();
    out.rule = fields.get_enum(MoveRule::kHuge);
    out.kind = fields.get_enum(MoveKind::kRehome);
    const auto from = fields.get<int16_t>();
    fields.require(from >= 0 && from <= static_cast<int>(kMaxNodes));
    out.from = NodeId{static_cast<int16_t>(from - 1)};
    fields.require(out.address % kPageBytes == 0 && out.pages > 0 && out.pages <= kPagesPerChunk);
    fields.get<uint16_t>();
    return fields.good();
}

bool decode(const RecordView& record, MoveOutcome& out) {
    if (!is_type(record, RecordType::kOutcome)) return false;
    Fields fields(record.payload);
    out.address = static_cast<uintptr_t>(fields.get<uint64_t>());
    out.time.ns = fields.get<uint64_t>();
    out.pages = fields.get<uint32_t>();
    out.node = fields.get_node();
    out.target = fields.get_node();
    out.outcome = fields.get_enum(PageOutcome::kElsewhere);
    out.kind = fields.get_enum(MoveKind::kRehome);
    fields.require(out.address % kPageBytes == 0 && out.pages > 0 && out.pages <= kMostOutcomePages);
    fields.get<uint16_t>();
    fields.get<uint32_t>();
    return fields.good();
}

bool decode(const RecordView& record, Topology& out) {
    if (!is_type(record, RecordType::kTopology)) return false;
    Fields fields(record.payload);
    const auto nodes = fields.get<uint16_t>();
    const auto cpus = fields.get<uint16_t>();
    fields.require(nodes <= kMaxNodes && cpus <= kMaxCpus);
    if (!fields.good() || record.payload.size() < topology_bytes(nodes, cpus)) return false;
    out = Topology{};
    out.node_of_cpu.fill(-1);
    out.node_count = nodes;
    out.cpu_count = cpus;
    out.evidence = fields.get_enum(TierEvidence::kDistance);
    fields.get<uint8_t>();
    fields.get<uint16_t>();
    for (unsigned i = 0; i < nodes; ++i) out.nodes[i] = get_node_entry(fields);
    for (unsigned i = 0; i < nodes; ++i)
        for (unsigned j = 0; j < nodes; ++j) out.distance[i][j] = fields.get<uint8_t>();
    for (unsigned i = 0; i < cpus; ++i) out.node_of_cpu[i] = fields.get_node().value;
    return fields.good();
}

}    // namespace pghot
