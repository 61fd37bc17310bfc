// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/bench/arguments.h"
#include "tests/bench/json.h"
#include "tests/bench/memory.h"
#include "tests/bench/phase.h"
#include "tests/bench/placement_watch.h"
#include "tests/bench/team.h"

namespace tier_bench {

// What every program of the family can be told.
struct Common {
    bool stop = false;
    int watch_ms = 0;
    uint64_t seed = 1;
    std::string output;    // file for the result; empty: stdout
};
void declare(Arguments& arguments, Common& common);
void declare(Arguments& arguments, StartPlace& place);    // --memory-node

// From memory that is placed to a result that can be printed: stops where asked, lets the threads run the phases, and
// asks the kernel before and after where the pages are. One thread makes, runs and finishes it.
class Session {
public:
    // `memory`: all that the workload uses, whole pages, placed. `cpus`: one for each thread.
    Session(const Common& common, std::vector<int> cpus, std::vector<std::span<std::byte>> memory,
            std::vector<WatchedSet> sets);

    // False: a thread does not run where it should.
    bool ready() const { return team_.pinned(); }
    size_t threads() const { return team_.size(); }

    // A phase; the times of the sets `begins` start with it.
    const Phase& run(std::string name, const std::function<void(size_t thread)>& work,
                     const std::vector<size_t>& begins = {});

    // Ends the watch. The phases' sum, then pages_per_node, pages_changed (pages that lie on another node than at the
    // start), phases, sets and watch.
    JsonObject finish();
    // After finish().
    const std::vector<std::vector<int>>& nodes() const { return nodes_after_; }    // of each part of the memory

private:
    std::vector<std::span<std::byte>> memory_;
    int watch_ms_;
    Team team_;
    std::vector<std::vector<int>> nodes_before_;
    std::vector<std::vector<int>> nodes_after_;
    std::unique_ptr<PlacementWatch> watch_;
    std::vector<Phase> phases_;
};

// main() of a program of the family: parses, runs, and turns exceptions (no memory, no more threads) into a line.
int run_program(const char* name, const Arguments& arguments, int argc, char** argv, const std::function<int()>& run);

// Prints the object as one line, where `common` says. 0, or 1 (said) when it cannot be written.
int print_result(const Common& common, const JsonObject& json);

// Prints "name: what: the errno's text" and answers 1, the exit status for it.
int fail_with_errno(const char* name, const std::string& what);
// Prints "name: what" and answers 1.
int fail(const char* name, const std::string& what);

}    // namespace tier_bench
