// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tests/sim/simulator.h"

namespace pghot::sim {

// A one-to-one shuffle of 0..count-1, the same for the same count: where memory's hot pages lie when nothing orders
// them.
class Shuffle {
public:
    explicit Shuffle(uint64_t count);
    uint64_t operator()(uint64_t number) const;

private:
    uint64_t count_;
    unsigned half_bits_;
};

// Pages by rank of heat, probability ~ 1 / rank^exponent (any but 1), without a table: for millions of pages. Hot pages
// lie together in runs of `run` pages, the runs are shuffled.
std::function<uint64_t(Random&)> power_law(uint64_t first, uint64_t count, double exponent, uint64_t run);

// One process of a simulated job.
struct Program {
    // Pages that belong home, and where: a node, or kAnyTop.
    struct Wanted {
        uint64_t first = 0;
        uint64_t count = 0;
        int16_t node = kAnyTop;
    };
    static constexpr int16_t kAnyTop = -1;

    Topology topology = published_machine(128);
    Settings settings;
    std::vector<Thread> threads;
    std::vector<Wanted> wanted;
};

struct Scenario {
    std::string name{};
    double seconds = 0;
    uint64_t samples = 0;    // the program ends after so many, and not by `seconds`; 0: by `seconds`
    unsigned ranks = 1;      // processes with one budget
    std::function<Program(unsigned rank)> program{};
    std::function<void(unsigned second)> every_second{};
};

// What came of it, over all ranks.
struct Result {
    double seconds = 0;            // until the end
    double seconds_to_90 = NAN;    // until this percentage of the wanted pages was where it belongs; NAN: never
    double seconds_to_99 = NAN;
    double home = 0;         // share of wanted pages at the end
    double dram = 0;         // share of all accesses that DRAM served
    double late_dram = 0;    // likewise in the last tenth of the time
    uint64_t pages_moved = 0;
    uint64_t pages_alone = 0;    // planned by the page rule
    uint64_t calls = 0;
    uint64_t samples = 0;
    uint64_t evictions = 0;
    uint64_t table_bytes = 0;    // of heat, in use at the end
    uint64_t table_pages = 0;    // that this memory covers
    unsigned most_moves = 0;     // of one page
    // Bytes that the rank with the fewest and with the most had moved, when half of the wanted pages were home.
    double least_share = NAN;
    double plan_us = 0;    // mean and worst of plan() on this machine
    double plan_us_most = 0;
};

Result run(const Scenario& scenario);

}    // namespace pghot::sim
