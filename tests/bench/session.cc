// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/session.h"

#include <csignal>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <utility>

#include <fmt/core.h>

namespace tier_bench {
namespace {

std::vector<std::vector<int>> nodes_of_all(const std::vector<std::span<std::byte>>& memory) {
    std::vector<std::vector<int>> nodes;
    for (const auto& part : memory) nodes.push_back(nodes_of(part));
    return nodes;
}

uint64_t changed(const std::vector<std::vector<int>>& before, const std::vector<std::vector<int>>& after) {
    uint64_t pages = 0;
    for (size_t part = 0; part < before.size(); ++part)
        for (size_t page = 0; page < before[part].size(); ++page) pages += before[part][page] != after[part][page];
    return pages;
}

std::string phase_as_json(const Phase& phase) {
    JsonObject json;
    json.add("name", phase.name);
    add_phase(json, phase);
    return json.text();
}

}    // namespace

void declare(Arguments& arguments, StartPlace& place) {
    arguments.text(
        "memory-node", "N|touch|interleave", name_of(place),
        [&place](const char* given) { return parse_place(given, place); },
        "node that holds the memory at the start, or where first touch or interleaving puts it; policies are reset "
        "then");
}

void declare(Arguments& arguments, Common& common) {
    arguments.flag("stop", common.stop, "stop (SIGSTOP) when the memory is ready; SIGCONT starts the accesses");
    arguments.integer("watch-ms", common.watch_ms, 0, "look every so often where pages are; 0: only first and last");
    arguments.count("seed", common.seed, "of everything that is random");
    const auto take_output = [&common](const char* given) {
        common.output = given;
        return !common.output.empty();
    };
    arguments.text("output", "FILE", "", take_output, "write the result to this file instead of stdout");
}

Session::Session(const Common& common, std::vector<int> cpus, std::vector<std::span<std::byte>> memory,
                 std::vector<WatchedSet> sets)
    : memory_(std::move(memory)), watch_ms_(common.watch_ms), team_(std::move(cpus)) {
    if (!team_.pinned()) return;
    if (common.stop) std::raise(SIGSTOP);
    nodes_before_ = nodes_of_all(memory_);
    watch_ = std::make_unique<PlacementWatch>(std::move(sets), std::chrono::milliseconds(watch_ms_), team_.cpus());
}

const Phase& Session::run(std::string name, const std::function<void(size_t thread)>& work,
                          const std::vector<size_t>& begins) {
    for (const size_t set : begins) watch_->begin(set);
    phases_.push_back(team_.run(std::move(name), work));
    return phases_.back();
}

JsonObject Session::finish() {
    watch_->stop();
    nodes_after_ = nodes_of_all(memory_);
    Phase total;
    for (const Phase& phase : phases_) {
        if (&phase == &phases_.front())
            total = phase;
        else
            total += phase;
    }
    std::vector<int> all;
    for (const auto& part : nodes_after_) all.insert(all.end(), part.begin(), part.end());
    JsonObject json;
    add_phase(json, total);
    json.add("pages_per_node", pages_per_node(all));
    json.add("pages_changed", changed(nodes_before_, nodes_after_));
    json.raw("phases", json_array(phases_, phase_as_json));
    json.raw("sets", sets_as_json(*watch_));
    JsonObject watch;
    watch.add("interval_ms", watch_ms_).add("looks", watch_->looks()).add_us("cpu_us", watch_->cpu_us());
    json.add("watch", watch);
    return json;
}

int print_result(const Common& common, const JsonObject& json) {
    std::FILE* file = common.output.empty() ? stdout : std::fopen(common.output.c_str(), "w");
    if (file == nullptr) return fail_with_errno("result", common.output);
    fmt::print(file, "{}\n", json.text());
    const bool written = std::ferror(file) == 0 && std::fflush(file) == 0;
    if (file != stdout) std::fclose(file);
    return written ? 0 : fail_with_errno("result", common.output.empty() ? "stdout" : common.output);
}

int fail(const char* name, const std::string& what) {
    fmt::print(stderr, "{}: {}\n", name, what);
    return 1;
}

int fail_with_errno(const char* name, const std::string& what) {
    return fail(name, fmt::format("{}: {}", what, std::strerror(errno)));
}

int run_program(const char* name, const Arguments& arguments, int argc, char** argv, const std::function<int()>& run) {
    try {
        switch (arguments.parse(argc, argv)) {
            case Parsed::kDone:
                return 0;
            case Parsed::kUsageError:
                return 2;
            case Parsed::kRun:
                return run();
        }
        return 2;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", name, error.what());
        return 1;
    }
}

}    // namespace tier_bench
