// SPDX-License-Identifier: Apache-2.0
#include "preload/cli/run_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>

#include "preload/cli/exit_codes.h"
#include "runtime/config/tunables.h"

namespace pghot {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kReplay = "replay:";

// "freq_window" and "PGHOT_FREQ_WINDOW" both name the setting.
std::string full_name(std::string_view name) {
    if (name.starts_with("PGHOT_")) return std::string(name);
    std::string full = "PGHOT_";
    for (char c : name) full += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    return full;
}

std::string absolute_value(std::string_view name, std::string_view value, const fs::path& folder) {
    if (name == "PGHOT_SOURCES" && value.starts_with(kReplay))
        return std::string(kReplay) + (folder / value.substr(kReplay.size())).string();
    if (value.empty() || value == "stderr" || (name != "PGHOT_REPORT" && name != "PGHOT_RECORD"))
        return std::string(value);
    return (folder / value).string();
}

// Adds one setting; a message when it cannot be honoured.
std::string add_setting(std::string_view name, std::string_view value, const fs::path& folder, RunRequest& request) {
    RunRequest::Setting setting{full_name(name), {}};
    setting.value = absolute_value(setting.name, value, folder);
    Tunables tunables;
    Warnings warnings;
    if (!read_tunable(setting.name, setting.value, tunables, warnings)) return std::string(warnings[0]);
    request.settings.push_back(std::move(setting));
    return {};
}

// Options that take a value, and what they set.
struct Option {
    std::string_view name;
    std::string_view setting;
};
constexpr Option kOptions[] = {{"--mode", "PGHOT_MODE"}, {"--report", "PGHOT_REPORT"}, {"--library", ""}};

std::string take_option(const Option& option, std::string_view value, const fs::path& folder, RunRequest& request) {
    if (!option.setting.empty()) return add_setting(option.setting, value, folder, request);
    request.library = folder / value;
    return {};
}

const Option* option_named(std::string_view name) {
    const auto* found = std::find_if(std::begin(kOptions), std::end(kOptions),
                                     [&](const Option& option) { return option.name == name; });
    return found == std::end(kOptions) ? nullptr : found;
}

// Takes the option or setting at `at` and moves past it. False at the first word of the command.
bool take_argument(std::span<const char* const> arguments, size_t& at, const fs::path& folder, RunRequest& request) {
    const std::string_view argument = arguments[at];
    if (argument == "--") return ++at, false;
    if (argument.starts_with("--")) {
        const size_t equals = argument.find('=');
        const Option* option = option_named(argument.substr(0, equals));
        if (option == nullptr) {
            request.error = fmt::format("pghot: run has no option {}", argument);
        } else if (equals != argument.npos) {
            request.error = take_option(*option, argument.substr(equals + 1), folder, request);
        } else if (++at == arguments.size() || arguments[at] == std::string_view("--")) {
            request.error = fmt::format("pghot: {} needs a value", argument);
        } else {
            request.error = take_option(*option, arguments[at], folder, request);
        }
        return ++at, true;
    }
    const size_t equals = argument.find('=');
    if (equals == argument.npos) return false;
    request.error = add_setting(argument.substr(0, equals), argument.substr(equals + 1), folder, request);
    return ++at, true;
}

int fail(int exit_code, std::string_view message) {
    fmt::print(stderr, "pghot: {}\n", message);
    return exit_code;
}

}    // namespace

RunRequest parse_run(std::span<const char* const> arguments, const fs::path& folder) {
    RunRequest request;
    size_t at = 0;
    while (at < arguments.size() && take_argument(arguments, at, folder, request))
        if (!request.error.empty()) return request;
    for (; at < arguments.size(); ++at) request.command.emplace_back(arguments[at]);
    if (request.command.empty()) request.error = "pghot: run needs a command, as in: pghot run -- ./program";
    return request;
}

fs::path find_library(const fs::path& command) {
    const fs::path folder = command.parent_path();
    for (const char* place : {".", "../lib", "../lib/x86_64-linux-gnu", "../lib64"}) {
        std::error_code error;
        fs::path library = (folder / place / "libpghot.so").lexically_normal();
        if (fs::is_regular_file(library, error)) return library;
    }
    return {};
}

std::string preload_list(const fs::path& library, const char* existing) {
    std::string list = library.string();
    if (list.find_first_of(" :$\t\n") != list.npos) return {};
    if (existing != nullptr && *existing != '\0') list += std::string(":") + existing;
    return list;
}

int run_command(const RunRequest& request) {
    std::error_code error;
    const fs::path self = fs::read_symlink("/proc/self/exe", error);
    const fs::path library = request.library.empty() ? find_library(self) : request.library;
    if (library.empty())
        return fail(kExitRunFailed, fmt::format("libpghot.so is neither beside {} nor in ../lib; name it with "
                                                "--library FILE",
                                                self.string()));
    if (access(library.c_str(), R_OK) != 0)
        return fail(kExitRunFailed, fmt::format("{}: {}", library.string(), std::strerror(errno)));
    const std::string preload = preload_list(library, std::getenv("LD_PRELOAD"));
    if (preload.empty())
        return fail(kExitRunFailed, fmt::format("{}: LD_PRELOAD cannot name a path with a space, a colon or a dollar "
                                                "sign; put the library elsewhere and name it with --library FILE",
                                                library.string()));
    setenv("LD_PRELOAD", preload.c_str(), 1);
    for (const auto& setting : request.settings) setenv(setting.name.c_str(), setting.value.c_str(), 1);

    std::vector<char*> words;
    for (const std::string& word : request.command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    execvp(words[0], words.data());
    const int exit_code = errno == ENOENT ? kExitNotFound : kExitCannotExecute;
    return fail(exit_code, fmt::format("{}: {}", words[0], std::strerror(errno)));
}

}    // namespace pghot
