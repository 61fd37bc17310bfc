// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace pghot {

// Notes which process this is: at load and in a forked child. A vfork child runs on its parent's memory with another
// process number, which is how start_signal.poll is kept from it.
void note_own_process();

// True in the process that last called note_own_process. One system call.
bool is_own_process();

}    // namespace pghot
