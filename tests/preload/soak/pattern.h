// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace soak {

inline constexpr size_t kPageBytes = 4096;

// Bytes [from, to) of some memory.
struct Range {
    size_t from = 0;
    size_t to = 0;
    bool empty() const { return from >= to; }
    size_t bytes() const { return empty() ? 0 : to - from; }
};

// What the bytes of a piece of memory must be: a function of whose they are, how often it was rewritten, and the
// offset. A page at the wrong place, of another owner or of an earlier version differs in every word.
class Pattern {
public:
    Pattern();    // of a new owner
    void next_version() { base_ = word_of(id_, ++version_); }

    // `at` is the begin of the memory (offset 0), aligned to 8.
    void fill(char* at, Range range) const;
    // Ends the process with status 1 at the first byte that is wrong, saying which. `what` names the memory.
    void check(const char* what, const char* at, Range range) const;
    // The same of one word in each page of the range, another each time by `salt`: cheap, and sees any page that is
    // wrong.
    void check_pages(const char* what, const char* at, Range range, uint64_t salt) const;
    // Of a copy: `copy` holds what was at offset `from`.
    void check_copy(const char* what, const char* copy, Range range) const;

private:
    static uint64_t word_of(uint64_t id, uint64_t version);
    uint64_t word_at(size_t offset) const;
    char byte_at(size_t offset) const { return static_cast<char>(word_at(offset) >> offset % 8 * 8); }
    size_t first_wrong(const char* at, Range range) const;
    [[noreturn]] void corrupt(const char* what, const char* at, Range range, size_t offset) const;

    uint64_t id_;
    uint64_t version_ = 0;
    uint64_t base_;
};

// Ends the process with status 1 at the first byte that is not zero.
void check_zeros(const char* what, const char* at, Range range);

// Named by every report of a fault.
inline uint64_t seed_of_run = 0;

}    // namespace soak
