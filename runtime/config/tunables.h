// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/config/tunable_values.h"

namespace pghot {

// The settings of a process. Made once at start-up by read_tunables, then only read, by any thread.
struct Tunables {
#define PGHOT_TUNABLE(field, type, name, unit, initial, range, sentence) type field = initial;
#include "runtime/config/tunables.def"
#undef PGHOT_TUNABLE
    uint64_t set_by_user = 0;    // bit i: row i of kTunables was given and could be read
};

struct TunableInfo {
    std::string_view name;    // of the environment variable
    Domain domain;
    std::string_view sentence;
};

inline constexpr std::array kTunables{
#define PGHOT_TUNABLE(field, type, name, unit, initial, range, sentence) TunableInfo{name, {unit, range}, sentence},
#include "runtime/config/tunables.def"
#undef PGHOT_TUNABLE
};
static_assert(kTunables.size() <= 64, "Tunables::set_by_user has one bit a row");

// What could not be honoured, as lines for a person, without line ends. Bounded: the rest is only counted.
class Warnings {
public:
    static constexpr size_t kLines = 8;
    static constexpr size_t kLineBytes = 256;

    size_t size() const { return size_; }
    size_t left_out() const { return left_out_; }
    std::string_view operator[](size_t line) const { return {lines_[line].data(), lengths_[line]}; }
    // The next free line to write into, or an empty span when it is only counted.
    std::span<char> next();
    // Says how much of it was used.
    void finish(size_t bytes) { lengths_[size_ - 1] = static_cast<uint16_t>(bytes); }

private:
    std::array<std::array<char, kLineBytes>, kLines> lines_{};
    std::array<uint16_t, kLines> lengths_{};
    size_t size_ = 0;
    size_t left_out_ = 0;
};

// Reads every PGHOT_ variable of `environment` (null-terminated list of NAME=VALUE, as `environ`). A variable given
// twice: the first counts, as for getenv. An empty value is as if it were not given. A value that cannot be read keeps
// its default and warns; so does a name that is not in the table. `secure` (AT_SECURE: the program has more rights than
// its caller) ignores all of them silently. No allocation, no lock, no locale; safe before constructors.
Tunables read_tunables(const char* const* environment, bool secure, Warnings& warnings);

// The same for one NAME and VALUE. False with a warning when it cannot be honoured.
bool read_tunable(std::string_view name, std::string_view value, Tunables& tunables, Warnings& warnings);

// The value of row `index` in the form that the environment takes. At most kTunableTextBytes are needed.
inline constexpr size_t kTunableTextBytes = 1100;
std::string_view tunable_text(const Tunables& tunables, size_t index, std::span<char> storage);

// The table's name closest to a misspelt one, or empty when none is close.
std::string_view nearest_tunable(std::string_view name);

// Text that is safe to print: cut to `limit` bytes with "..." after it, control characters, quotes and bytes above 126
// as \xNN. Into `storage`, which needs 4 * limit + 3 bytes.
std::string_view printable(std::string_view text, size_t limit, std::span<char> storage);

}    // namespace pghot
