// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "runtime/config/tunables.h"

namespace pghot {

// The table of settings for a terminal: the values that `tunables` holds, marked where the environment set them.
std::string tunables_text(const Tunables& tunables);

// The same as JSON, one object with a member for each setting.
std::string tunables_json(const Tunables& tunables);

// The table of settings and defaults as it stands in README.md, between its markers.
std::string tunables_markdown();

}    // namespace pghot
