// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>

#include "runtime/base/refused_calls.h"

namespace pghot {

// Turns the answer of a call that sets errno into the kernel's own form: -errno for -1. A failure is noted for the
// report; who expects one (a file that is optional) looks at errno before coming here.
inline long answer(KernelCall call, long result) {
    if (result != -1) return result;
    refused_calls.note(call, errno);
    return -errno;
}

}    // namespace pghot
