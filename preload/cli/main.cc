// SPDX-License-Identifier: Apache-2.0
//
// The pghot command: run a program under libpghot.so, show its settings, say what this machine lets it do.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>

#include "preload/cli/doctor.h"
#include "preload/cli/exit_codes.h"
#include "preload/cli/run_command.h"
#include "preload/cli/stat_command.h"
#include "preload/cli/tunables_command.h"
#include "runtime/kernel/syscalls.h"

namespace pghot {
namespace {

using Arguments = std::span<const char* const>;

constexpr std::string_view kHelp = R"(Brings hot pages from slow memory (CXL) home to DRAM, without root.

usage: pghot run [--mode off|observe|on] [--report FILE] [--library FILE] [NAME=VALUE...] -- COMMAND [ARGUMENT...]
           runs COMMAND with libpghot.so; NAME is a setting, as freq_window or PGHOT_FREQ_WINDOW
       pghot doctor [--json]
           what this machine has (nodes, tiers, sources of samples) and what would happen here
       pghot tunables [--json|--markdown]
           every setting with its value, default, range and meaning
       pghot stat [--json]
           processes of yours on this node that libpghot tiers: samples, what was promoted, their part of a job's budget
       pghot stat --clean [--json]
           removes what killed jobs left in /dev/shm, never what is in use
       pghot --version
       pghot --help

exit status:
  0    done
  1    doctor: libpghot would move nothing here; stat: no such process; stat --clean: a file could not be removed
  2    the arguments are wrong
  3    the output could not be written
  run: COMMAND's own; 125 libpghot.so cannot be preloaded, 126 COMMAND cannot be executed, 127 it was not found
)";

int print(std::string_view text) {
    const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    if (written) return kExitOk;
    fmt::print(stderr, "pghot: the output could not be written\n");
    return kExitOutput;
}

int usage_error(std::string_view message) {
    fmt::print(stderr, "{}\npghot --help says more\n", message);
    return kExitUsage;
}

// The one option that `arguments` holds, empty for none; anything else is not `allowed`.
bool single_option(Arguments arguments, std::span<const std::string_view> allowed, std::string_view& option) {
    if (arguments.empty()) return true;
    option = arguments[0];
    if (arguments.size() > 1) return false;
    for (std::string_view name : allowed)
        if (name == option) return true;
    return false;
}

Tunables tunables_of_environment() {
    Warnings warnings;
    const Tunables tunables = read_tunables(environ, false, warnings);
    for (size_t line = 0; line < warnings.size(); ++line) fmt::print(stderr, "{}\n", warnings[line]);
    return tunables;
}

int run(Arguments arguments) {
    std::error_code error;
    const RunRequest request = parse_run(arguments, std::filesystem::current_path(error));
    if (!request.error.empty()) return usage_error(request.error);
    return run_command(request);
}

int tunables(Arguments arguments) {
    constexpr std::string_view kAllowed[] = {"--json", "--markdown"};
    std::string_view option;
    if (!single_option(arguments, kAllowed, option)) return usage_error("pghot: tunables takes --json or --markdown");
    if (option == "--markdown") return print(tunables_markdown());
    const Tunables current = tunables_of_environment();
    return print(option == "--json" ? tunables_json(current) : tunables_text(current));
}

int doctor(Arguments arguments) {
    constexpr std::string_view kAllowed[] = {"--json"};
    std::string_view option;
    if (!single_option(arguments, kAllowed, option)) return usage_error("pghot: doctor takes --json");
    const Tunables current = tunables_of_environment();
    KernelFiles files;
    const auto facts = examine(files, current);
    const int printed = print(option == "--json" ? doctor_json(*facts, current) : doctor_text(*facts, current));
    if (printed != kExitOk) return printed;
    return would_work(verdict_of(*facts, current)) ? kExitOk : kExitWouldNotTier;
}

int clean(bool as_json) {
    KernelFiles files;
    const auto jobs = clean_jobs(files, sys::now());
    const int printed = print(as_json ? clean_json(jobs) : clean_text(jobs));
    if (printed != kExitOk) return printed;
    const auto was_left = [](const JobFile& job) { return job.fate == JobFile::Fate::kNotRemoved; };
    return std::any_of(jobs.begin(), jobs.end(), was_left) ? kExitNotCleaned : kExitOk;
}

int stat(Arguments arguments) {
    bool as_json = false, cleans = false;
    for (const std::string_view argument : arguments) {
        bool& option = argument == "--clean" ? cleans : as_json;
        if (option || (argument != "--clean" && argument != "--json"))
            return usage_error("pghot: stat takes --clean and --json");
        option = true;
    }
    if (cleans) return clean(as_json);
    KernelFiles files;
    const auto processes = running_processes(files);
    const TimeNs now = sys::now();
    const int printed = print(as_json ? stat_json(processes, now) : stat_text(processes, now));
    if (printed != kExitOk) return printed;
    return processes.empty() ? kExitNothingRuns : kExitOk;
}

int dispatch(Arguments arguments) {
    if (arguments.empty()) return usage_error("pghot: say what to do");
    const std::string_view command = arguments[0];
    const Arguments rest = arguments.subspan(1);
    if (!rest.empty() && (std::string_view(rest[0]) == "--help" || std::string_view(rest[0]) == "-h"))
        return print(kHelp);
    if (command == "run") return run(rest);
    if (command == "tunables") return tunables(rest);
    if (command == "doctor") return doctor(rest);
    if (command == "stat") return stat(rest);
    if (command == "--version") return print("pghot " PGHOT_VERSION "\n");
    if (command == "--help" || command == "-h" || command == "help") return print(kHelp);
    return usage_error(fmt::format("pghot: no command {}", command));
}

}    // namespace
}    // namespace pghot

int main(int count, char** words) {
    return pghot::dispatch(pghot::Arguments(words, static_cast<size_t>(count)).subspan(count > 0 ? 1 : 0));
}
