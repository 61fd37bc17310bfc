// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace pghot {

// What stands behind our functions of these names: libc's, or another preload library's. Null only where the C library
// has none loaded. Any thread.
using DlopenFunction = void* (*)(const char* file, int mode);
using DlsymFunction = void* (*)(void* library, const char* name);
DlopenFunction next_dlopen();
DlsymFunction next_dlsym();

// For functions that end by calling another one that must see their caller: libc finds out by the return address who
// called, for RTLD_NEXT, $ORIGIN, RUNPATH and the namespace. The last call is then a jump that leaves the caller's
// return address in place: optimised in every build type.
#define PGHOT_JUMPS __attribute__((optimize("O2", "omit-frame-pointer")))

}    // namespace pghot
