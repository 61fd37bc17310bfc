// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace pghot {

// Runs `work` on a thread that has its own, empty descriptor table, and waits until the thread is gone (at most two
// seconds): the way to read or write a file without touching the program's descriptors. False when there was no such
// thread, or it took longer; then `argument` must stay valid.
bool on_machine_thread(void (*work)(void*), void* argument);

}    // namespace pghot
