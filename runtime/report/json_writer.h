// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/base/function_ref.h"

namespace pghot {

// Where a document goes, piece by piece. False: stop, the rest is lost.
using JsonSink = FunctionRef<bool(std::span<const char>)>;

// Writes one JSON document, indented, without allocating: 4 KiB of its own storage, handed on when full. Always valid
// JSON: control characters are escaped, and bytes that are not UTF-8 become U+FFFD. The caller pairs begin and end; at
// most kDepth levels. One thread; lives on the stack.
class JsonWriter {
public:
    static constexpr size_t kDepth = 8;

    // What `sink` refers to outlives the writer: name it, a temporary would be gone.
    explicit JsonWriter(JsonSink sink) : sink_(sink) {}

    // In an object, `key` is given; in an array or at the top it is left out.
    void begin_object(std::string_view key = {});
    void end_object() { end('}'); }
    void begin_array(std::string_view key = {});
    void end_array() { end(']'); }
    void text(std::string_view key, std::string_view value);
    void number(std::string_view key, uint64_t value);
    void signed_number(std::string_view key, int64_t value);
    void boolean(std::string_view key, bool value);

    // Ends the line and hands the rest on. False when the sink refused any of it.
    bool finish();

private:
    void open(char bracket, std::string_view key);
    void end(char bracket);
    void before_value(std::string_view key);
    void new_line();
    void put(char c);
    void put(std::string_view text);
    void put_quoted(std::string_view text);
    void hand_on();

    JsonSink sink_;
    std::array<char, 4096> buffer_{};
    size_t used_ = 0;
    size_t depth_ = 0;
    bool first_ = true;    // no value yet at this level
    bool refused_ = false;
};

}    // namespace pghot
