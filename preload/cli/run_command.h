// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace pghot {

// What `pghot run` was asked to do. `error` is set when it cannot be done as asked; the rest is then meaningless.
struct RunRequest {
    struct Setting {
        std::string name;    // PGHOT_...
        std::string value;
    };
    std::vector<Setting> settings;
    std::filesystem::path library;    // empty: found beside the command
    std::vector<std::string> command;
    std::string error;
};

// Reads the arguments after `run`. Settings are checked here, where the user still sees it, rather than in the program.
// File names become absolute against `folder`: the program may change its own.
RunRequest parse_run(std::span<const char* const> arguments, const std::filesystem::path& folder);

// libpghot.so beside the command or in ../lib of it; empty when it is in neither.
std::filesystem::path find_library(const std::filesystem::path& command);

// The value of LD_PRELOAD with `library` before what was there. Empty when its path has a character that LD_PRELOAD
// cannot hold: the loader splits at spaces and colons and expands $.
std::string preload_list(const std::filesystem::path& library, const char* existing);

// Runs the command in place of this process. Returns only on failure, with an exit code, after having said why.
int run_command(const RunRequest& request);

}    // namespace pghot
