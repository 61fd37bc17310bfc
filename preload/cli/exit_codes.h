// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace pghot {

// Exit codes of the command, as --help lists them. Those of `run` are env(1)'s.
enum ExitCode : int {
    kExitOk = 0,
    kExitWouldNotTier = 1,    // doctor: libpghot would move nothing here
    kExitNothingRuns = 1,     // stat: no process to list
    kExitNotCleaned = 1,      // stat --clean: a file that nobody uses could not be removed
    kExitUsage = 2,
    kExitOutput = 3,         // the output could not be written
    kExitRunFailed = 125,    // run: libpghot.so cannot be preloaded
    kExitCannotExecute = 126,
    kExitNotFound = 127,
};

}    // namespace pghot
