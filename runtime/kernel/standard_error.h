// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace pghot {

// The program's standard error, for lines and reports that the user asked for. From program threads only: ours have
// another descriptor table.

// Notes which file descriptor 2 is. Once, at load.
void note_standard_error();

// Writes all of `bytes`; false when that was not possible, or when descriptor 2 is another file now: a program that
// closed it gets the number for the next file it opens, and our text would end up in its data. No signal of a failing
// write (SIGPIPE, SIGXFSZ) reaches the program. Changes errno.
bool write_standard_error(std::span<const char> bytes);

}    // namespace pghot
