// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace pghot {

// False where vm.overcommit_memory is 2: every mapping counts, used or not. Asked of the kernel once, at jemalloc's
// start, and kept.
bool kernel_overcommits();

}    // namespace pghot
