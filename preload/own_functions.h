// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace pghot {

// Our function for a name of the malloc family that takes or gives blocks, whoever replaced the visible one; null for
// every other name.
void* own_function(std::string_view name);

}    // namespace pghot
