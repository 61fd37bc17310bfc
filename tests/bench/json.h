// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include <fmt/core.h>

namespace tier_bench {

// A JSON object that is being written, member after member. Names and texts are the programs' own: nothing is escaped.
class JsonObject {
public:
    // Already JSON: an object, an array, null.
    JsonObject& raw(std::string_view name, std::string_view value) {
        text_ += fmt::format("{}\"{}\":{}", text_.empty() ? "" : ",", name, value);
        return *this;
    }
    JsonObject& add(std::string_view name, std::string_view value) { return raw(name, fmt::format("\"{}\"", value)); }
    JsonObject& add(std::string_view name, const char* value) { return add(name, std::string_view(value)); }
    JsonObject& add(std::string_view name, const JsonObject& value) { return raw(name, value.text()); }
    template <std::integral Number>
    JsonObject& add(std::string_view name, Number value) {
        return raw(name, fmt::format("{}", value));
    }
    JsonObject& add(std::string_view name, double value) { return raw(name, fmt::format("{}", value)); }
    // Microseconds need no fractions.
    JsonObject& add_us(std::string_view name, double us) { return raw(name, fmt::format("{:.0f}", us)); }
    template <typename Key, typename Number>
    JsonObject& add(std::string_view name, const std::map<Key, Number>& values) {
        JsonObject object;
        for (const auto& [key, value] : values) object.add(fmt::format("{}", key), value);
        return add(name, object);
    }

    // This object's members, then the other's.
    JsonObject& joined(const JsonObject& other) {
        text_ += (text_.empty() || other.text_.empty() ? "" : ",") + other.text_;
        return *this;
    }

    std::string text() const { return "{" + text_ + "}"; }

private:
    std::string text_;
};

// [f(first), f(second), ...]
template <typename Range, typename AsJson>
std::string json_array(const Range& range, AsJson as_json) {
    std::string text;
    for (const auto& each : range) text += (text.empty() ? "" : ",") + std::string(as_json(each));
    return "[" + text + "]";
}

}    // namespace tier_bench
