// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/base/statistics.h"
#include "runtime/base/units.h"

// The types that settings are read as, and for each type one reader and one writer. Readers are pure: no locale, no
// allocation, no errno. A reader that returns false has left its target alone.
namespace pghot {

enum class Mode : uint8_t { kOff, kObserve, kOn };
enum class Scope : uint8_t { kProcess, kHeap };

// Where hot pages go.
struct Target {
    enum class Kind : uint8_t { kCaller, kAlternate, kNode };
    Kind kind = Kind::kCaller;
    NodeId node{};    // only for kNode
    bool operator==(const Target&) const = default;
};

// Text of at most kBytes - 1 characters, held by value: the environment it came from belongs to the program, which may
// write over it.
template <size_t kBytes>
struct FixedText {
    std::array<char, kBytes> data{};    // ends in a zero byte
    uint16_t size = 0;

    constexpr std::string_view view() const { return {data.data(), size}; }
    constexpr const char* c_str() const { return data.data(); }
    constexpr bool empty() const { return size == 0; }
    constexpr bool assign(std::string_view text) {
        if (text.size() >= kBytes) return false;
        *this = FixedText{};
        for (char c : text) data[size++] = c;
        return true;
    }
};
using PathText = FixedText<kSettingTextBytes>;
using PlacementText = FixedText<kSettingTextBytes>;
using JobText = FixedText<64>;    // a file name in /dev/shm is made of it

// A percentage, in steps of a tenth.
struct Percent {
    uint32_t tenths = 0;
    bool operator==(const Percent&) const = default;
};

// The ladder of sources in the order to try. An exhausted list means none.
struct SourceList {
    std::array<SourceKind, 3> order{SourceKind::kIbs};
    uint8_t count = 1;
    PathText replay_file{};    // set when order[0] is kReplay, which stands alone
    std::span<const SourceKind> view() const { return {order.data(), count}; }
};

// Set of numbers below kBits. Empty means "not set by the user" wherever it is a setting.
template <size_t kBits>
struct NumberSet {
    std::array<uint64_t, kBits / 64> words{};
    constexpr bool contains(size_t number) const {
        return number < kBits && ((words[number / 64] >> (number % 64)) & 1) != 0;
    }
    constexpr void insert(size_t number) { words[number / 64] |= uint64_t{1} << (number % 64); }
    constexpr bool empty() const {
        for (uint64_t word : words)
            if (word != 0) return false;
        return true;
    }
    static constexpr size_t capacity() { return kBits; }
};
using NodeMask = NumberSet<kMaxNodes>;
using CpuMask = NumberSet<kMaxCpus>;

// Allowed values of a row, as in tunables.def.
struct Domain {
    std::string_view unit;
    std::string_view range;
};

bool read_value(std::string_view text, Domain domain, bool& value);
bool read_value(std::string_view text, Domain domain, uint32_t& value);
bool read_value(std::string_view text, Domain domain, uint64_t& value);
bool read_value(std::string_view text, Domain domain, Mode& value);
bool read_value(std::string_view text, Domain domain, Scope& value);
bool read_value(std::string_view text, Domain domain, Target& value);
bool read_value(std::string_view text, Domain domain, SourceList& value);
bool read_value(std::string_view text, Domain domain, NodeMask& value);
bool read_value(std::string_view text, Domain domain, CpuMask& value);
bool read_value(std::string_view text, Domain domain, PathText& value);
bool read_value(std::string_view text, Domain domain, JobText& value);
bool read_value(std::string_view text, Domain domain, Percent& value);

// The value in the form that its reader takes, into `storage`; cut at its end. Not zero-terminated.
std::string_view write_value(std::span<char> storage, Domain domain, bool value);
std::string_view write_value(std::span<char> storage, Domain domain, uint32_t value);
std::string_view write_value(std::span<char> storage, Domain domain, uint64_t value);
std::string_view write_value(std::span<char> storage, Domain domain, Mode value);
std::string_view write_value(std::span<char> storage, Domain domain, Scope value);
std::string_view write_value(std::span<char> storage, Domain domain, const Target& value);
std::string_view write_value(std::span<char> storage, Domain domain, const SourceList& value);
std::string_view write_value(std::span<char> storage, Domain domain, const NodeMask& value);
std::string_view write_value(std::span<char> storage, Domain domain, const CpuMask& value);
std::string_view write_value(std::span<char> storage, Domain domain, const PathText& value);
std::string_view write_value(std::span<char> storage, Domain domain, const JobText& value);
std::string_view write_value(std::span<char> storage, Domain domain, Percent value);

}    // namespace pghot
