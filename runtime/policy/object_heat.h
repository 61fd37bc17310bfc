// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/base/function_ref.h"
#include "runtime/policy/chunk_header.h"
#include "runtime/policy/payback.h"
#include "runtime/policy/ticks.h"

namespace pghot {

// A large object of the program, a live block of the heap or a mapping: the chunks that lie in it whole.
struct ObjectRange {
    uint64_t first_chunk = 0;
    uint64_t end_chunk = 0;    // one past the last

    uint64_t chunks() const { return end_chunk - first_chunk; }
    bool holds(uint64_t chunk) const { return chunk - first_chunk < chunks(); }
};

// Who knows objects: in the library the allocator and the snapshot of mappings, in a test a table.
class ObjectSource {
public:
    // The object that holds `address`; empty where nothing is known.
    virtual ObjectRange object_at(uintptr_t address) const = 0;

protected:
    ~ObjectSource() = default;
};

// Heat of whole objects: whether the samples of a large array are spread over all of it. Then one sample is evidence
// enough for each of its chunks: waiting for eight pages of each would take n x 8 samples for n chunks, this takes
// about n.
//
// Objects are numbered from 1, 0 is none. A bounded number is known; the one without samples for longest makes room.
// Owned by the policy, sampler thread only. Does not allocate.
class ObjectHeat {
public:
    // Smaller objects are as quick by the chunk rule.
    static constexpr uint64_t kMinChunks = 8;
    static constexpr unsigned kObjects = 256;

    explicit ObjectHeat(const HeatRules& rules) : rules_(rules) {}

    // When a chunk is sampled first. 0 for objects that are too small.
    uint16_t number_of(const ObjectRange& range, Tick now);
    // A sample of `chunk`, which `number` was given for; the first of that chunk in its running half window or not.
    void count(uint16_t number, uint64_t chunk, uint8_t caller, bool first_in_half, Tick now);
    // Whether samples at `chunk` count as samples of a hot object that `caller` uses most. Answers from the last look.
    bool vouches(uint16_t number, uint64_t chunk, uint8_t caller) const;

    // The header of a chunk, null when it has no heat.
    using HeaderOf = FunctionRef<const ChunkHeader*(uint64_t chunk)>;
    // Looks again at objects with enough new samples. About 20 ns a chunk of theirs; the less often the more there is,
    // so that it stays below 1 % of the time: the 100,000 chunks of 200 GiB every 0.8 s.
    void look(Tick now, const MoveEconomy& economy, HeaderOf header_of);

private:
    struct Object {
        ObjectRange range;
        Tick half_start = 0;
        Tick last = 0;
        Tick active_since = 0;
        Tick next_look = 0;
        std::array<uint32_t, 2> samples{};    // [0] of the running half window, [1] of the last
        std::array<uint32_t, 2> chunks{};     // different ones among them
        std::array<uint32_t, kUnknownCaller> node_samples{};
        bool hot = false;
        uint8_t caller = kUnknownCaller;
    };

    void rotate(Object& object, Tick now) const;
    Object& coldest(Tick now);
    bool is_hot(Object& object, Tick now, const MoveEconomy& economy, HeaderOf header_of) const;
    bool is_spread(const Object& object) const;
    static bool is_revisited(const ObjectRange& range, HeaderOf header_of);
    static uint8_t clear_majority(const Object& object);

    HeatRules rules_;
    unsigned used_ = 0;
    std::array<Object, kObjects> objects_{};
};

}    // namespace pghot
