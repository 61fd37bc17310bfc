// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace pghot {

// The outcome of a step that may fail for a reason the user can act on: what was tried and the kernel's errno.
// `what` is a string literal; `error` 0 is success.
struct [[nodiscard]] Status {
    const char* what = "";
    int error = 0;
    constexpr bool ok() const { return error == 0; }
};

}    // namespace pghot
