// SPDX-License-Identifier: Apache-2.0
#include "runtime/report/json_writer.h"

#include <charconv>

namespace pghot {
namespace {

// Length of the UTF-8 sequence at the front of `text` (RFC 3629: no overlong form, no surrogate, at most U+10FFFF), or
// 0 when there is none.
size_t utf8_length(std::string_view text) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    const auto continues = [&](size_t from, size_t to) {
        for (size_t i = from; i < to; ++i)
            if (i >= text.size() || (byte(i) & 0xc0) != 0x80) return false;
        return true;
    };
    const unsigned lead = byte(0);
    if (lead < 0x80) return 1;
    if (lead >= 0xc2 && lead < 0xe0) return continues(1, 2) ? 2 : 0;
    if (lead >= 0xe0 && lead < 0xf0) {
        if (!continues(1, 3)) return 0;
        if (lead == 0xe0 && byte(1) < 0xa0) return 0;
        if (lead == 0xed && byte(1) >= 0xa0) return 0;
        return 3;
    }
    if (lead >= 0xf0 && lead < 0xf5) {
        if (!continues(1, 4)) return 0;
        if (lead == 0xf0 && byte(1) < 0x90) return 0;
        if (lead == 0xf4 && byte(1) >= 0x90) return 0;
        return 4;
    }
    return 0;
}

}    // namespace

void JsonWriter::begin_object(std::string_view key) { open('{', key); }
void JsonWriter::begin_array(std::string_view key) { open('[', key); }

void JsonWriter::open(char bracket, std::string_view key) {
    before_value(key);
    put(bracket);
    ++depth_;
    first_ = true;
}

void JsonWriter::end(char bracket) {
    --depth_;
    if (!first_) new_line();
    put(bracket);
    first_ = false;
}

void JsonWriter::text(std::string_view key, std::string_view value) {
    before_value(key);
    put_quoted(value);
}

void JsonWriter::number(std::string_view key, uint64_t value) {
    before_value(key);
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    put(std::string_view(digits, static_cast<size_t>(end - digits)));
}

void JsonWriter::signed_number(std::string_view key, int64_t value) {
    before_value(key);
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    put(std::string_view(digits, static_cast<size_t>(end - digits)));
}

void JsonWriter::boolean(std::string_view key, bool value) {
    before_value(key);
    put(value ? std::string_view("true") : std::string_view("false"));
}

bool JsonWriter::finish() {
    put('\n');
    hand_on();
    return !refused_;
}

void JsonWriter::before_value(std::string_view key) {
    if (!first_) put(',');
    if (depth_ > 0) new_line();
    first_ = false;
    if (key.empty()) return;
    put_quoted(key);
    put(std::string_view(": "));
}

void JsonWriter::new_line() {
    put('\n');
    for (size_t i = 0; i < depth_; ++i) put(std::string_view("  "));
}

void JsonWriter::put(char c) {
    if (used_ == buffer_.size()) hand_on();
    buffer_[used_++] = c;
}

void JsonWriter::put(std::string_view text) {
    for (char c : text) put(c);
}

void JsonWriter::put_quoted(std::string_view text) {
    constexpr std::string_view kHex = "0123456789abcdef";
    constexpr std::string_view kReplacement = "\xef\xbf\xbd";    // U+FFFD
    put('"');
    while (!text.empty()) {
        const size_t length = utf8_length(text);
        const auto byte = static_cast<unsigned char>(text.front());
        if (length == 0) {
            put(kReplacement);
        } else if (byte == '"' || byte == '\\') {
            put('\\');
            put(text.front());
        } else if (byte < ' ' || byte == 127) {
            put(std::string_view("\\u00"));
            put(kHex[byte >> 4]);
            put(kHex[byte & 15]);
        } else {
            put(std::string_view(text.data(), length));
        }
        text.remove_prefix(length == 0 ? 1 : length);
    }
    put('"');
}

void JsonWriter::hand_on() {
    if (used_ > 0 && !refused_) refused_ = !sink_(std::span<const char>(buffer_.data(), used_));
    used_ = 0;
}

}    // namespace pghot
