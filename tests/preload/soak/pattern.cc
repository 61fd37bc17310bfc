// SPDX-License-Identifier: Apache-2.0
#include "pattern.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "random.h"
#include "tally.h"

namespace soak {
namespace {

constexpr size_t kNone = SIZE_MAX;
constinit std::atomic<uint64_t> next_id{1};

constexpr uint64_t kStep = 0x9e3779b97f4a7c15;    // from one word of a pattern to the next

// Two words at once: on the emulated machine each access costs, and accesses are most of what a soak does.
using Pair = uint64_t __attribute__((vector_size(16)));
constexpr size_t kPairBytes = sizeof(Pair);

Pair load_pair(const char* at) {
    Pair pair;
    std::memcpy(&pair, at, sizeof pair);
    return pair;
}

// Writes whole pairs of words from `at` on, below `end`, the first word being `word`. Where it ended. These loops are
// functions of their own so that what they count with stays in registers.
[[gnu::noinline]] char* fill_pairs(char* at, const char* end, uint64_t word) {
    const Pair step = {2 * kStep, 2 * kStep};
    for (Pair pair = {word, word + kStep}; at + kPairBytes <= end; at += kPairBytes, pair += step)
        std::memcpy(at, &pair, sizeof pair);
    return at;
}

// Compares whole pairs likewise. Where they ended, or the first that is wrong.
[[gnu::noinline]] const char* right_pairs(const char* at, const char* end, uint64_t word) {
    const Pair step = {2 * kStep, 2 * kStep};
    for (Pair pair = {word, word + kStep}; at + kPairBytes <= end; at += kPairBytes, pair += step) {
        const Pair wrong = load_pair(at) ^ pair;
        if ((wrong[0] | wrong[1]) != 0) break;
    }
    return at;
}

uint64_t load(const char* at) {
    uint64_t word;
    std::memcpy(&word, at, sizeof word);
    return word;
}

// Length of the run of equal verdicts: how far the damage goes.
template <typename IsWrong>
size_t wrong_until(size_t offset, size_t end, IsWrong is_wrong) {
    while (offset < end && is_wrong(offset)) ++offset;
    return offset;
}

// The process ends at once, without its exit handlers: they would use a heap that is known to be damaged.
[[noreturn]] void end_corrupt(const char* what, const char* at, Range range, size_t offset, size_t until) {
    const size_t word = std::min(offset / 8 * 8, range.to - std::min<size_t>(range.to, 8));
    std::fprintf(
        stderr,
        "soak: CORRUPT (seed %lu, process %d): offset %zu to %zu, at %p, of bytes %zu to %zu of %s; found %016lx\n",
        seed_of_run, getpid(), offset, until, static_cast<const void*>(at + offset), range.from, range.to, what,
        load(at + word));
    _exit(1);
}

}    // namespace

[[noreturn]] void give_up(const char* what) {
    std::fprintf(stderr, "soak: seed %lu, process %d: ", seed_of_run, getpid());
    std::perror(what);
    _exit(3);
}

uint64_t Pattern::word_at(size_t offset) const { return base_ + offset / 8 * kStep; }

uint64_t Pattern::word_of(uint64_t id, uint64_t version) { return mix(id * 0x100000001b3 + version); }

Pattern::Pattern() : id_(next_id.fetch_add(1, std::memory_order_relaxed)), base_(word_of(id_, 0)) {}

void Pattern::fill(char* at, Range range) const {
    if (range.empty()) return;
    size_t offset = range.from;
    for (; offset % 8 != 0 && offset < range.to; ++offset) at[offset] = byte_at(offset);
    offset = static_cast<size_t>(fill_pairs(at + offset, at + range.to, word_at(offset)) - at);
    for (; offset < range.to; ++offset) at[offset] = byte_at(offset);
    count(tally.bytes_written, range.bytes());
}

size_t Pattern::first_wrong(const char* at, Range range) const {
    size_t offset = range.from;
    for (; offset % 8 != 0 && offset < range.to; ++offset)
        if (at[offset] != byte_at(offset)) return offset;
    offset = static_cast<size_t>(right_pairs(at + offset, at + range.to, word_at(offset)) - at);
    for (; offset < range.to; ++offset)
        if (at[offset] != byte_at(offset)) return offset;
    return kNone;
}

void Pattern::check(const char* what, const char* at, Range range) const {
    if (range.empty()) return;
    const size_t offset = first_wrong(at, range);
    if (offset != kNone) corrupt(what, at, range, offset);
    count(tally.bytes_verified, range.bytes());
}

void Pattern::check_pages(const char* what, const char* at, Range range, uint64_t salt) const {
    uint64_t words = 0;
    for (size_t page = range.from / kPageBytes * kPageBytes; page < range.to; page += kPageBytes, ++words) {
        const size_t offset = page + mix(salt + page) % (kPageBytes / 8) * 8;
        if (offset < range.from || offset + 8 > range.to) continue;
        if (load(at + offset) != word_at(offset)) corrupt(what, at, range, first_wrong(at, {offset, offset + 8}));
    }
    count(tally.bytes_verified, words * 8);
}

void Pattern::check_copy(const char* what, const char* copy, Range range) const {
    for (size_t offset = range.from; offset < range.to; ++offset)
        if (copy[offset - range.from] != byte_at(offset)) corrupt(what, copy - range.from, range, offset);
}

void Pattern::corrupt(const char* what, const char* at, Range range, size_t offset) const {
    char text[160];
    std::snprintf(text, sizeof text, "%s %lu version %lu (wanted %016lx%s)", what, id_, version_, word_at(offset),
                  at[offset] == byte_at(offset) ? ", right when read again" : "");
    end_corrupt(text, at, range, offset, wrong_until(offset, range.to, [&](size_t i) { return at[i] != byte_at(i); }));
}

void check_zeros(const char* what, const char* at, Range range) {
    size_t offset = range.from;
    for (; offset + kPairBytes <= range.to; offset += kPairBytes)
        if (const Pair pair = load_pair(at + offset); (pair[0] | pair[1]) != 0) break;
    while (offset < range.to && at[offset] == 0) ++offset;
    if (offset < range.to)
        end_corrupt(what, at, range, offset, wrong_until(offset, range.to, [&](size_t i) { return at[i] != 0; }));
    count(tally.bytes_verified, range.bytes());
}

}    // namespace soak
