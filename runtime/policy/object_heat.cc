// SPDX-License-Identifier: Apache-2.0
#include "runtime/policy/object_heat.h"

#include <algorithm>

namespace pghot {
namespace {

// Samples of an object before its spread means anything, times freq_threshold: 32 uniform samples of 8 chunks or more
// touch fewer than three quarters of the expected number of chunks once in 10^4.
constexpr uint32_t kMinSamples = 32;
constexpr Tick kLookTicks = 3;               // 48 ms
constexpr uint64_t kChunksPerTick = 2048;    // of all objects together; each from a cold cache line, 0.1 ms of 16

// Different ones of n chunks that s uniform samples touch: n (1 - (1 - 1/n)^s).
double expected_chunks(uint64_t n, uint32_t s) {
    const auto count = static_cast<double>(n);
    double untouched = 1;    // (1 - 1/n)^s by squaring: the library has no libm
    for (double factor = 1 - 1 / count; s != 0; s >>= 1, factor *= factor)
        if ((s & 1) != 0) untouched *= factor;
    return count * (1 - untouched);
}

}    // namespace

uint16_t ObjectHeat::number_of(const ObjectRange& range, Tick now) {
    if (range.end_chunk <= range.first_chunk || range.chunks() < kMinChunks) return 0;
    for (unsigned i = 0; i < used_; ++i) {
        Object& known = objects_[i];
        if (known.range.first_chunk != range.first_chunk) continue;
        known.range = range;    // grown or cut, or another at its place: its samples will tell
        return static_cast<uint16_t>(i + 1);
    }
    Object& object = used_ < kObjects ? objects_[used_++] : coldest(now);
    object = Object{};
    object.range = range;
    object.half_start = object.last = object.active_since = object.next_look = now;
    return static_cast<uint16_t>(&object - objects_.data() + 1);
}

ObjectHeat::Object& ObjectHeat::coldest(Tick now) {
    return *std::max_element(objects_.begin(), objects_.end(), [now](const Object& a, const Object& b) {
        return later_by(now, a.last) < later_by(now, b.last);
    });
}

void ObjectHeat::rotate(Object& object, Tick now) const {
    const int32_t age = later_by(now, object.half_start);
    const auto half = static_cast<int32_t>(rules_.half);
    if (age < half) return;
    const bool keep = age < 2 * half;
    object.samples = {0, keep ? object.samples[0] : 0};
    object.chunks = {0, keep ? object.chunks[0] : 0};
    object.half_start = keep ? object.half_start + rules_.half : now;
    for (auto& count : object.node_samples) count = keep ? (count + 1) / 2 : 0;
    if (!keep) object.active_since = now;
}

void ObjectHeat::count(uint16_t number, uint64_t chunk, uint8_t caller, bool first_in_half, Tick now) {
    if (number == 0) return;
    Object& object = objects_[number - 1u];
    if (!object.range.holds(chunk)) return;    // its number went to another object
    rotate(object, now);
    ++object.samples[0];
    object.chunks[0] += first_in_half;
    if (caller != kUnknownCaller) ++object.node_samples[caller];
    object.last = now;
}

bool ObjectHeat::vouches(uint16_t number, uint64_t chunk, uint8_t caller) const {
    if (number == 0) return false;
    const Object& object = objects_[number - 1u];
    return object.hot && object.caller == caller && object.range.holds(chunk);
}

void ObjectHeat::look(Tick now, const MoveEconomy& economy, HeaderOf header_of) {
    uint64_t chunks = 0;
    for (unsigned i = 0; i < used_; ++i) chunks += objects_[i].range.chunks();
    for (unsigned i = 0; i < used_; ++i) {
        Object& object = objects_[i];
        if (later_by(now, object.next_look) < 0) continue;
        object.next_look = now + kLookTicks + static_cast<Tick>(chunks / kChunksPerTick);
        rotate(object, now);
        object.hot = is_hot(object, now, economy, header_of);
    }
}

bool ObjectHeat::is_hot(Object& object, Tick now, const MoveEconomy& economy, HeaderOf header_of) const {
    const uint32_t samples = object.samples[0] + object.samples[1];
    if (samples < kMinSamples * rules_.threshold || !is_spread(object)) return false;
    const uint8_t caller = clear_majority(object);
    if (caller == kUnknownCaller) return false;
    object.caller = caller;
    const Tick begin = object.half_start - rules_.half;
    const Tick age = now - object.active_since;
    const Tick evidence = now - (later_by(object.active_since, begin) > 0 ? object.active_since : begin);
    return pays(economy, object.range.chunks() * kPagesPerChunk, samples, evidence, age) &&
           is_revisited(object.range, header_of);
}

// Three quarters of the chunks that uniform access would have touched, in the half window that tells more.
bool ObjectHeat::is_spread(const Object& object) const {
    const unsigned half = object.samples[1] > object.samples[0];
    return 4 * static_cast<double>(object.chunks[half]) >=
           3 * expected_chunks(object.range.chunks(), object.samples[half]);
}

// Not one sweep from end to end: in a single sweep the times of the last samples rise (or fall) along the object. An
// object counts as used again when they rise and fall many times, or when many of its chunks were sampled in both half
// windows, as they are when sweep follows sweep.
bool ObjectHeat::is_revisited(const ObjectRange& range, HeaderOf header_of) {
    uint64_t sampled = 0;
    uint64_t in_both = 0, earlier = 0, later = 0;
    const ChunkHeader* previous = nullptr;
    for (uint64_t chunk = range.first_chunk; chunk < range.end_chunk; ++chunk) {
        const ChunkHeader* header = header_of(chunk);
        if (header == nullptr || header->window_samples() == 0) continue;
        ++sampled;
        in_both += header->samples[0] != 0 && header->samples[1] != 0;
        const int step = previous == nullptr ? 0 : static_cast<int16_t>(header->newest - previous->newest);
        earlier += step < 0;
        later += step > 0;
        previous = header;
    }
    const uint64_t turns = std::min(earlier, later);
    return (turns >= 2 && 8 * turns >= sampled) || 4 * in_both >= sampled;
}

// The caller of at least nine samples in ten: a chunk with a single sample cannot tell by itself.
uint8_t ObjectHeat::clear_majority(const Object& object) {
    uint64_t sum = 0;
    for (const uint32_t count : object.node_samples) sum += count;
    const auto most = std::max_element(object.node_samples.begin(), object.node_samples.end());
    return *most * 10ull >= sum * 9 && sum > 0 ? static_cast<uint8_t>(most - object.node_samples.begin())
                                               : kUnknownCaller;
}

}    // namespace pghot
