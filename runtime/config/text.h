// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

// Cutting texts. string_view::substr is not used in the library: its range check refers to libstdc++.
namespace pghot {

// The first `size` characters, or all there are.
constexpr std::string_view head(std::string_view text, size_t size) {
    return {text.data(), size < text.size() ? size : text.size()};
}

// What follows the first `size` characters.
constexpr std::string_view tail(std::string_view text, size_t size) {
    text.remove_prefix(size < text.size() ? size : text.size());
    return text;
}

}    // namespace pghot
