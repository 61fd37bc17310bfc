// SPDX-License-Identifier: Apache-2.0
#include "runtime/config/tunables.h"

#include <fmt/compile.h>

#include <algorithm>
#include <string_view>

#include "runtime/config/text.h"

namespace pghot {
namespace {

constexpr std::string_view kPrefix = "PGHOT_";
constexpr size_t kShownName = 32;      // characters of a name or value that a warning repeats
constexpr size_t kLongestName = 40;    // longer names are close to nothing of ours
constexpr size_t kNoRow = kTunables.size();

size_t row_of(std::string_view name) {
    for (size_t row = 0; row < kTunables.size(); ++row)
        if (kTunables[row].name == name) return row;
    return kNoRow;
}

bool read_row(size_t row, std::string_view value, Tunables& tunables) {
    size_t index = 0;
#define PGHOT_TUNABLE(field, type, name, unit, initial, range, sentence) \
    if (index++ == row) return read_value(value, {unit, range}, tunables.field);
#include "runtime/config/tunables.def"
#undef PGHOT_TUNABLE
    return false;
}

void warn_value(size_t row, std::string_view value, const Tunables& tunables, Warnings& warnings) {
    const std::span<char> line = warnings.next();
    if (line.empty()) return;
    char shown[4 * kShownName + 3];
    char initial[64];
    const TunableInfo& info = kTunables[row];
    const std::string_view kept = tunable_text(tunables, row, initial);
    const auto end = fmt::format_to_n(
        line.data(), line.size(), FMT_COMPILE("pghot: {}={} cannot be used: allowed {}{}{}, using {}"), info.name,
        printable(value, kShownName, shown), info.domain.range, info.domain.unit.empty() ? "" : " ", info.domain.unit,
        kept.empty() ? std::string_view("none") : kept);
    warnings.finish(std::min(end.size, line.size()));
}

void warn_name(std::string_view name, Warnings& warnings) {
    const std::span<char> line = warnings.next();
    if (line.empty()) return;
    char shown[4 * kShownName + 3];
    const std::string_view near = nearest_tunable(name);
    const auto end = fmt::format_to_n(line.data(), line.size(), FMT_COMPILE("pghot: {} is not a setting, ignored{}{}"),
                                      printable(name, kShownName, shown),
                                      near.empty() ? std::string_view("") : std::string_view("; did you mean "), near);
    warnings.finish(std::min(end.size, line.size()));
}

// Number of letters to insert, delete or change (Levenshtein) between two short names.
size_t edit_distance(std::string_view a, std::string_view b) {
    std::array<size_t, kLongestName + 1> row{};
    for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.size(); ++j) {
            const size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
        }
    }
    return row[b.size()];
}

bool given_before(const char* const* environment, const char* const* entry, std::string_view name) {
    for (; environment != entry; ++environment) {
        const std::string_view earlier(*environment);
        if (earlier.size() > name.size() && earlier.starts_with(name) && earlier[name.size()] == '=') return true;
    }
    return false;
}

}    // namespace

std::span<char> Warnings::next() {
    if (size_ == kLines) {
        ++left_out_;
        return {};
    }
    return lines_[size_++];
}

bool read_tunable(std::string_view name, std::string_view value, Tunables& tunables, Warnings& warnings) {
    const size_t row = row_of(name);
    if (row == kNoRow) return warn_name(name, warnings), false;
    if (value.empty()) return true;
    if (!read_row(row, value, tunables)) return warn_value(row, value, tunables, warnings), false;
    tunables.set_by_user |= uint64_t{1} << row;
    return true;
}

Tunables read_tunables(const char* const* environment, bool secure, Warnings& warnings) {
    Tunables tunables;
    if (secure || environment == nullptr) return tunables;
    for (const char* const* entry = environment; *entry != nullptr; ++entry) {
        const std::string_view text(*entry);
        const size_t equals = text.find('=');
        if (!text.starts_with(kPrefix) || equals == text.npos) continue;
        const std::string_view name = head(text, equals);
        if (given_before(environment, entry, name)) continue;
        (void)read_tunable(name, tail(text, equals + 1), tunables, warnings);
    }
    return tunables;
}

std::string_view tunable_text(const Tunables& tunables, size_t index, std::span<char> storage) {
    size_t row = 0;
#define PGHOT_TUNABLE(field, type, name, unit, initial, range, sentence) \
    if (row++ == index) return write_value(storage, {unit, range}, tunables.field);
#include "runtime/config/tunables.def"
#undef PGHOT_TUNABLE
    return {};
}

std::string_view nearest_tunable(std::string_view name) {
    if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
    if (name.size() > kLongestName) return {};
    std::string_view nearest;
    size_t distance = name.size() / 3 + 1;    // a third of the letters wrong is still a slip, more is another word
    for (const TunableInfo& info : kTunables) {
        const size_t edits = edit_distance(name, tail(info.name, kPrefix.size()));
        if (edits > distance || (edits == distance && !nearest.empty())) continue;
        distance = edits;
        nearest = info.name;
    }
    return nearest;
}

std::string_view printable(std::string_view text, size_t limit, std::span<char> storage) {
    constexpr std::string_view kHex = "0123456789abcdef";
    constexpr std::string_view kMore = "...";
    size_t used = 0;
    for (size_t i = 0; i < text.size(); ++i) {
        if (i == limit) {
            for (char c : kMore) storage[used++] = c;
            break;
        }
        const auto byte = static_cast<unsigned char>(text[i]);
        if (byte >= ' ' && byte < 127 && byte != '"' && byte != '\\') {
            storage[used++] = text[i];
            continue;
        }
        for (char c : {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]}) storage[used++] = c;
    }
    return {storage.data(), used};
}

}    // namespace pghot
