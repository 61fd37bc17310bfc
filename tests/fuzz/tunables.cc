// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: any environment is read into settings that lie in their ranges and can be written and read back. An
// input is an environment, one NAME=VALUE a line.
#include "runtime/config/tunables.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "runtime/config/file_name.h"
#include "runtime/config/job_name.h"

namespace pghot {
namespace {

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
}

std::vector<std::string> lines_of(const uint8_t* data, size_t size) {
    std::vector<std::string> lines(1);
    for (size_t i = 0; i < size; ++i) {
        if (data[i] == '\n') {
            lines.emplace_back();
        } else if (data[i] != 0) {
            lines.back().push_back(static_cast<char>(data[i]));
        }
    }
    return lines;
}

void check_every_row_reads_back(const Tunables& tunables) {
    for (size_t row = 0; row < kTunables.size(); ++row) {
        char first[kTunableTextBytes];
        char second[kTunableTextBytes];
        const std::string_view text = tunable_text(tunables, row, first);
        if (text.ends_with("...")) continue;    // a list too long to be shown whole, or a path of the user's
        Tunables again;
        Warnings warnings;
        require(read_tunable(kTunables[row].name, text, again, warnings), "a written value cannot be read");
        require(tunable_text(again, row, second) == text, "a value changes when written and read");
    }
}

void check_warnings_are_printable(const Warnings& warnings) {
    for (size_t line = 0; line < warnings.size(); ++line)
        for (char c : warnings[line]) require(c >= ' ' && c < 127, "a warning holds a control character");
}

}    // namespace
}    // namespace pghot

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::vector<std::string> lines = pghot::lines_of(data, size);
    std::vector<const char*> environment;
    for (const std::string& line : lines) environment.push_back(line.c_str());
    environment.push_back(nullptr);

    pghot::Warnings warnings;
    const pghot::Tunables tunables = pghot::read_tunables(environment.data(), false, warnings);
    pghot::check_every_row_reads_back(tunables);
    pghot::check_warnings_are_printable(warnings);

    const auto job = pghot::job_of_launcher(environment.data(), [] { return 1; });
    pghot::require(job.empty() || pghot::is_job_name(job.view()), "a launcher's variable makes no name of a job");

    char name[64];
    const auto rank = pghot::mpi_rank(environment.data());
    const auto file = pghot::expand_file_name(tunables.report.view(), {1, rank, lines[0]}, name);
    pghot::require(file.size() < sizeof name, "a file name beyond its storage");
    return 0;
}
