// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "runtime/kernel/filesystem.h"

namespace pghot {

// Opens /dev/null as descriptors 0, 1 and 2 of a table that has none, so that no file of ours ever gets these numbers.
void take_standard_descriptors();

// The process's command line, arguments separated by spaces, cut to fit, zero-terminated.
void read_command(FileSystem& files, std::span<char> out);

// When the process with this number began, in clock ticks since boot (field 22 of /proc/PID/stat); 0: there is none, or
// it is a zombie, which does nothing any more. Number and beginning together name a process for ever.
uint64_t start_ticks_of(FileSystem& files, int pid);

// The PID namespace of this process: numbers of processes mean the same only within one. 0 where /proc does not tell.
uint64_t pid_namespace();

// "EACCES" for 13; "E?" for a number that has no name.
std::string_view error_name(int error);
// "Permission denied" for 13, in English whatever the locale.
std::string_view error_text(int error);

// Zeroed shared memory behind a memfd of the calling thread's descriptor table: another process reads it through
// /proc/PID/task/TID/fd. Not inherited by forked children; never given back. Null when it cannot be had.
void* map_memfd(const char* name, size_t bytes);

}    // namespace pghot
