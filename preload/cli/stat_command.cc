// SPDX-License-Identifier: Apache-2.0
#include "preload/cli/stat_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "runtime/engine/job.h"
#include "runtime/kernel/process.h"
#include "runtime/report/json_writer.h"
#include "runtime/report/report.h"

namespace pghot {
namespace {

constexpr std::string_view kSamplerName = "pghot-sampler";
constexpr std::string_view kStatisticsLink = "/memfd:pghot-statistics";

bool is_number(std::string_view text, int& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size();
}

std::vector<std::string> names_in(FileSystem& files, const std::string& folder) {
    std::vector<std::string> names;
    files.list(folder.c_str(), [&](std::string_view name) { names.emplace_back(name); });
    return names;
}

// The folder of the thread that has the statistics open; empty: this process has none.
std::string sampler_folder(FileSystem& files, int pid) {
    const std::string tasks = fmt::format("/proc/{}/task", pid);
    for (const std::string& tid : names_in(files, tasks)) {
        char buffer[32];
        std::string folder = fmt::format("{}/{}", tasks, tid);
        if (files.first_line(fmt::format("{}/comm", folder).c_str(), buffer) == kSamplerName) return folder;
    }
    return {};
}

// The sampler's descriptors are its own, so they are found under its number, not under the process's.
std::string statistics_file(FileSystem& files, const std::string& thread_folder) {
    for (const std::string& number : names_in(files, thread_folder + "/fd")) {
        std::string path = fmt::format("{}/fd/{}", thread_folder, number);
        std::error_code error;
        if (std::filesystem::read_symlink(path, error).string().starts_with(kStatisticsLink)) return path;
    }
    return {};
}

template <size_t kBytes>
std::string_view text_in(const char (&storage)[kBytes]) {
    return {storage, strnlen(storage, kBytes)};
}

std::unique_ptr<JobBoard> board_of(FileSystem& files, std::string_view job) {
    auto board = std::make_unique<JobBoard>();
    const std::span<char> bytes(reinterpret_cast<char*>(board.get()), sizeof(JobBoard));
    const long got = files.read(job_file(job).c_str(), bytes);
    const bool is_whole = got == static_cast<long>(bytes.size()) && board->format.load(kJobOrder) == kJobBoardFormat;
    return is_whole ? std::move(board) : nullptr;
}

std::optional<double> budget_share(FileSystem& files, int pid, std::string_view job) {
    if (job.empty()) return {};
    const auto board = board_of(files, job);
    if (board == nullptr) return {};
    double all = 0, own = 0;
    for (const JobSlot& slot : used_slots(*board)) {
        const uint64_t owner = slot.owner.load(kJobOrder);
        const auto granted = static_cast<double>(slot.granted_bytes.load(kJobOrder));
        if (owner != 0) all += granted;
        if (owner != 0 && pid_of_owner(owner) == pid) own += granted;
    }
    if (all == 0) return {};
    return own / all;
}

EngineState state_of(const Statistics& statistics) {
    return static_cast<EngineState>(statistics.state.load(std::memory_order_relaxed));
}

uint64_t count(const Statistics& statistics, Counter which) { return statistics.counters.get(which); }

uint64_t seconds_of(const Statistics& statistics, TimeNs now) {
    return now.ns > statistics.started_ns ? (now.ns - statistics.started_ns) / kNsPerSecond : 0;
}

uint64_t samples_in_last_second(const Statistics& statistics) {
    const uint64_t rows = statistics.rows.load(std::memory_order_relaxed);
    return rows == 0 ? 0 : statistics.second[(rows - 1) % kSecondRows].samples;
}

std::string share_text(const RunningProcess& process) {
    if (!process.budget_share) return "-";
    return fmt::format("{:.0f} %", *process.budget_share * 100);
}

std::string line_of(const RunningProcess& process, TimeNs now) {
    if (process.statistics == nullptr) return fmt::format("{:>8}  another version of libpghot\n", process.pid);
    const Statistics& statistics = *process.statistics;
    const std::string_view job = text_in(statistics.job);
    return fmt::format(
        "{:>8}  {:<10} {:>7} {:>12} {:>9} {:>13} {:>7} {:>10}  {:<16} {}\n", process.pid,
        state_name(state_of(statistics)), seconds_of(statistics, now), count(statistics, Counter::hwhint_total_events),
        samples_in_last_second(statistics), count(statistics, Counter::promoted_bytes) / kMiB, share_text(process),
        statistics.period.load(std::memory_order_relaxed), job.empty() ? "-" : job, text_in(statistics.command));
}

void write_process(JsonWriter& json, const RunningProcess& process, TimeNs now) {
    json.begin_object();
    json.signed_number("pid", process.pid);
    json.boolean("same_version", process.statistics != nullptr);
    if (process.statistics == nullptr) return json.end_object();
    const Statistics& statistics = *process.statistics;
    json.text("state", state_name(state_of(statistics)));
    json.text("source", source_name_of(statistics.source));
    json.number("seconds", seconds_of(statistics, now));
    json.number("samples", count(statistics, Counter::hwhint_total_events));
    json.number("samples_per_second", samples_in_last_second(statistics));
    json.number("period", statistics.period.load(std::memory_order_relaxed));
    json.number("promoted_pages", count(statistics, Counter::pgpromote_success));
    json.number("promoted_bytes", count(statistics, Counter::promoted_bytes));
    json.text("job", text_in(statistics.job));
    json.text("job_reason", text_in(statistics.job_reason));
    json.number("ranks", statistics.ranks.load(std::memory_order_relaxed));
    if (process.budget_share)
        json.number("budget_percent", static_cast<uint64_t>(std::lround(*process.budget_share * 100)));
    json.text("command", text_in(statistics.command));
    json.end_object();
}

template <typename Write>
std::string json_of(Write write) {
    std::string text;
    const auto sink = [&](std::span<const char> piece) { return text.append(piece.data(), piece.size()), true; };
    JsonWriter json(sink);
    json.begin_object();
    write(json);
    json.end_object();
    json.finish();
    return text;
}

std::string_view fate_name(JobFile::Fate fate) {
    switch (fate) {
        case JobFile::Fate::kInUse:
            return "in use";
        case JobFile::Fate::kRemoved:
            return "removed";
        case JobFile::Fate::kNotRemoved:
            break;
    }
    return "not removed";
}

std::string reason_of(std::string_view what, int error) { return fmt::format("{}: {}", what, error_text(error)); }

// The lock is held from looking to removing: nobody joins in between.
JobFile clean_job(FileSystem& files, const std::string& name, TimeNs now) {
    const std::string path = std::string(kJobFolder) + "/" + name;
    JobFile job{path, JobFile::Fate::kNotRemoved, {}};
    SharedMemory memory;
    const Status opened = memory.open(path.c_str(), sizeof(JobBoard), SharedMemory::Missing::kRefuse);
    if (!opened.ok()) {
        job.reason = reason_of(opened.what, opened.error);
        return job;
    }
    const auto& board = *reinterpret_cast<const JobBoard*>(memory.bytes().data());
    const uint64_t format = board.format.load(kJobOrder);
    if (format != 0 && format != kJobBoardFormat) {
        job.reason = "it is of another version of libpghot";
    } else if (anybody_is_on(board, files, now)) {
        job.fate = JobFile::Fate::kInUse;
    } else if (const int error = memory.remove(path.c_str()); error != 0) {
        job.reason = reason_of("it cannot be removed", -error);
    } else {
        job.fate = JobFile::Fate::kRemoved;
    }
    memory.unmap();
    return job;
}

}    // namespace

bool begins_as_statistics(std::span<const char> bytes) {
    return bytes.size() >= sizeof kStatisticsMagic &&
           std::memcmp(bytes.data(), kStatisticsMagic, sizeof kStatisticsMagic) == 0;
}

std::unique_ptr<Statistics> statistics_of(std::span<const char> bytes) {
    if (bytes.size() < sizeof(Statistics)) return nullptr;
    auto statistics = std::make_unique<Statistics>();
    std::memcpy(static_cast<void*>(statistics.get()), bytes.data(), sizeof(Statistics));
    const bool is_ours = statistics->version == kStatisticsVersion && statistics->bytes == sizeof(Statistics);
    return is_ours ? std::move(statistics) : nullptr;
}

std::vector<RunningProcess> running_processes(FileSystem& files) {
    std::vector<RunningProcess> processes;
    std::vector<char> bytes(sizeof(Statistics));
    for (const std::string& name : names_in(files, "/proc")) {
        int pid = 0;
        if (!is_number(name, pid)) continue;
        const std::string folder = sampler_folder(files, pid);
        if (folder.empty()) continue;
        const std::string path = statistics_file(files, folder);
        if (path.empty()) continue;
        const long got = files.read(path.c_str(), bytes);
        const auto read = std::span<const char>(bytes).first(static_cast<size_t>(std::max(got, 0L)));
        if (!begins_as_statistics(read)) continue;    // it ended meanwhile, or is just beginning
        RunningProcess process;
        process.pid = pid;
        process.statistics = statistics_of(read);
        if (process.statistics != nullptr)
            process.budget_share = budget_share(files, pid, text_in(process.statistics->job));
        processes.push_back(std::move(process));
    }
    std::sort(processes.begin(), processes.end(),
              [](const RunningProcess& a, const RunningProcess& b) { return a.pid < b.pid; });
    return processes;
}

std::string stat_text(const std::vector<RunningProcess>& processes, TimeNs now) {
    if (processes.empty()) return "no process of yours runs under libpghot with tiering started\n";
    std::string text =
        fmt::format("{:>8}  {:<10} {:>7} {:>12} {:>9} {:>13} {:>7} {:>10}  {:<16} {}\n", "PID", "STATE", "SECONDS",
                    "SAMPLES", "SAMPLES/s", "PROMOTED MiB", "BUDGET", "PERIOD", "JOB", "COMMAND");
    for (const RunningProcess& process : processes) text += line_of(process, now);
    return text;
}

std::string stat_json(const std::vector<RunningProcess>& processes, TimeNs now) {
    return json_of([&](JsonWriter& json) {
        json.begin_array("processes");
        for (const RunningProcess& process : processes) write_process(json, process, now);
        json.end_array();
    });
}

std::vector<JobFile> clean_jobs(FileSystem& files, TimeNs now) {
    std::vector<JobFile> jobs;
    for (const std::string& name : names_in(files, kJobFolder))
        if (name.starts_with(job_file_prefix().view())) jobs.push_back(clean_job(files, name, now));
    std::sort(jobs.begin(), jobs.end(), [](const JobFile& a, const JobFile& b) { return a.name < b.name; });
    return jobs;
}

std::string clean_text(const std::vector<JobFile>& jobs) {
    if (jobs.empty()) return fmt::format("no job of yours has a file in {}\n", kJobFolder);
    std::string text;
    for (const JobFile& job : jobs)
        text += fmt::format("{}: {}{}{}\n", job.name, fate_name(job.fate), job.reason.empty() ? "" : ": ", job.reason);
    return text;
}

std::string clean_json(const std::vector<JobFile>& jobs) {
    return json_of([&](JsonWriter& json) {
        json.begin_array("jobs");
        for (const JobFile& job : jobs) {
            json.begin_object();
            json.text("file", job.name);
            json.text("fate", fate_name(job.fate));
            json.text("reason", job.reason);
            json.end_object();
        }
        json.end_array();
    });
}

}    // namespace pghot
