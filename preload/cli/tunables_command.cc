// SPDX-License-Identifier: Apache-2.0
#include "preload/cli/tunables_command.h"

#include <fmt/format.h>

#include "runtime/report/json_writer.h"

namespace pghot {
namespace {

std::string value_of(const Tunables& tunables, size_t row) {
    char storage[kTunableTextBytes];
    return std::string(tunable_text(tunables, row, storage));
}

bool is_set(const Tunables& tunables, size_t row) { return ((tunables.set_by_user >> row) & 1) != 0; }

std::string range_of(const TunableInfo& info) {
    if (info.domain.unit.empty()) return std::string(info.domain.range);
    return fmt::format("{} {}", info.domain.range, info.domain.unit);
}

std::string or_empty(const std::string& value) { return value.empty() ? "(empty)" : value; }

// A bar would end the cell.
std::string cell(std::string_view text) {
    std::string escaped;
    for (char c : text) {
        if (c == '|') escaped += '\\';
        escaped += c;
    }
    return escaped;
}

}    // namespace

std::string tunables_text(const Tunables& tunables) {
    std::string text;
    for (size_t row = 0; row < kTunables.size(); ++row) {
        const TunableInfo& info = kTunables[row];
        text += fmt::format("{}={}{}\n    {}\n    allowed: {}; default: {}\n", info.name, value_of(tunables, row),
                            is_set(tunables, row) ? "    (set in the environment)" : "", info.sentence, range_of(info),
                            or_empty(value_of(Tunables{}, row)));
    }
    return text;
}

std::string tunables_json(const Tunables& tunables) {
    std::string text;
    const auto sink = [&](std::span<const char> piece) { return text.append(piece.data(), piece.size()), true; };
    JsonWriter json(sink);
    json.begin_object();
    for (size_t row = 0; row < kTunables.size(); ++row) {
        const TunableInfo& info = kTunables[row];
        json.begin_object(info.name);
        json.text("value", value_of(tunables, row));
        json.text("default", value_of(Tunables{}, row));
        json.text("unit", info.domain.unit);
        json.text("range", info.domain.range);
        json.boolean("set", is_set(tunables, row));
        json.text("meaning", info.sentence);
        json.end_object();
    }
    json.end_object();
    json.finish();
    return text;
}

std::string tunables_markdown() {
    std::string text = "| Variable | Default | Allowed | Meaning |\n| --- | --- | --- | --- |\n";
    for (size_t row = 0; row < kTunables.size(); ++row) {
        const TunableInfo& info = kTunables[row];
        text += fmt::format("| `{}` | {} | {} | {} |\n", info.name, or_empty(value_of(Tunables{}, row)),
                            cell(range_of(info)), cell(info.sentence));
    }
    return text;
}

}    // namespace pghot
