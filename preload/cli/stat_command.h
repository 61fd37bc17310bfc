// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/statistics.h"
#include "runtime/base/units.h"
#include "runtime/kernel/filesystem.h"

namespace pghot {

// A process of this node that has an engine, as its statistics say. A copy: the process goes on meanwhile.
struct RunningProcess {
    int pid = 0;
    std::unique_ptr<Statistics> statistics;    // null: of another version of the library
    std::optional<double> budget_share;        // of what the job's ranks on the board moved; empty: alone, or unknown
};

// A file of a job in /dev/shm.
struct JobFile {
    std::string name;
    enum class Fate : uint8_t { kInUse, kRemoved, kNotRemoved } fate = Fate::kInUse;
    std::string reason;    // why it was not removed
};

// Processes under the library that this user may look into, by number. Reads /proc and /dev/shm.
std::vector<RunningProcess> running_processes(FileSystem& files);

// Whether these are a process's statistics, of whatever version. Not yet in a process that is just starting.
bool begins_as_statistics(std::span<const char> bytes);
// A copy; null when they are of another version.
std::unique_ptr<Statistics> statistics_of(std::span<const char> bytes);

std::string stat_text(const std::vector<RunningProcess>& processes, TimeNs now);
std::string stat_json(const std::vector<RunningProcess>& processes, TimeNs now);

// Removes what jobs of this user left in /dev/shm when all of their ranks were killed. Never one that is in use.
std::vector<JobFile> clean_jobs(FileSystem& files, TimeNs now);
std::string clean_text(const std::vector<JobFile>& jobs);
std::string clean_json(const std::vector<JobFile>& jobs);

}    // namespace pghot
