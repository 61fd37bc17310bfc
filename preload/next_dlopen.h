// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace pghot {

using DlopenFunction = void* (*)(const char* file, int mode);

// The dlopen behind ours: libc's, or another preload library's. Null only where the C library has none loaded. Any
// thread.
DlopenFunction next_dlopen();

}    // namespace pghot
