// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/base/function_ref.h"

// Reading the small texts of /proc and /sys: no locale, no allocation, every function answers false on garbage.
namespace pghot {

// Reads a number at the beginning of `text` and removes it.
template <typename Integer>
bool take_number(std::string_view& text, Integer& out, int base = 10) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
    if (error != std::errc{}) return false;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return true;
}

inline bool take_char(std::string_view& text, char wanted) {
    if (text.empty() || text.front() != wanted) return false;
    text.remove_prefix(1);
    return true;
}

inline void skip_spaces(std::string_view& text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
}

// A kernel list such as "0-2,5": calls visit for every number below `limit`. False where the text is not a list; what
// came before the garbage has been visited. An empty text is the empty list.
inline bool for_each_in_list(std::string_view text, uint32_t limit, FunctionRef<void(uint32_t)> visit) {
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
    while (!text.empty()) {
        uint32_t first = 0;
        if (!take_number(text, first)) return false;
        uint32_t last = first;
        if (take_char(text, '-') && !take_number(text, last)) return false;
        if (last < first) return false;
        for (uint32_t i = first; i <= last && i < limit; ++i) visit(i);
        if (text.empty()) return true;
        if (!take_char(text, ',') || text.empty()) return false;
    }
    return true;
}

}    // namespace pghot
