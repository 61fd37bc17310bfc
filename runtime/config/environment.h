// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "runtime/config/text.h"

namespace pghot {

// The value of `name` in a null-terminated list of NAME=VALUE (environ), the first where it is given twice; empty when
// it is not there. Points into the list.
inline std::string_view environment_value(const char* const* environment, std::string_view name) {
    for (; *environment != nullptr; ++environment) {
        const std::string_view entry(*environment);
        if (entry.starts_with(name) && entry.size() > name.size() && entry[name.size()] == '=')
            return tail(entry, name.size() + 1);
    }
    return {};
}

}    // namespace pghot
