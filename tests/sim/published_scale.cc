// SPDX-License-Identifier: Apache-2.0
//
// The shipping policy and budget at the scale of the published measurements, on a virtual clock; a table. Simulations
// are independent of each other and run side by side.
//     build/release/tests/sim/published_scale [--seed N] [--threshold N] [--sample-ns NS] [FILTER]
#include <getopt.h>
#include <oneapi/tbb/parallel_for_each.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/sim/published_scenarios.h"

namespace pghot::sim {
namespace {

constexpr const char kUsage[] =
    "usage: published_scale [--seed N] [--threshold N] [--sample-ns NS] [FILTER]\n"
    "  --seed N         of all random numbers (1)\n"
    "  --threshold N    as PGHOT_FREQ_THRESHOLD, 1 to 7 (both 1 and 2)\n"
    "  --sample-ns NS   cost of a sample (bench_heat): adds the sampler's share of one core to the table\n"
    "  FILTER           only scenarios whose line holds this text\n";

struct Options {
    uint64_t seed = 1;
    unsigned threshold = 0;    // 0: 1 and 2
    double sample_ns = 0;      // 0: not said
    std::string filter;
};

struct Run {
    unsigned threshold;
    Scenario scenario;
    Result result;
};

std::vector<Run> scenarios(const Options& options) {
    constexpr uint64_t kGiB = 262144;    // pages
    std::vector<Run> runs;
    for (unsigned threshold = 1; threshold <= 7; ++threshold) {
        if (options.threshold == 0 ? threshold > 2 : threshold != options.threshold) continue;
        const PolicyParameters policy{.freq_threshold = static_cast<uint8_t>(threshold)};
        const uint64_t seed = options.seed;
        const auto add = [&](Scenario scenario) {
            if (scenario.name.find(options.filter) != std::string::npos)
                runs.push_back({threshold, std::move(scenario), {}});
        };
        add(micro_benchmark(policy, seed));
        for (uint32_t rate : {65536u, 4096u}) add(job_of_ranks(policy, 128, kGiB, rate, seed));
        for (bool large_blocks : {true, false}) {
            for (uint64_t mib : {64u, 256u}) {
                add(large_program(policy, 200 * kGiB, 200 * kGiB, mib * kMiB, large_blocks, seed));
                add(large_program(policy, 200 * kGiB, 20 * kGiB, mib * kMiB, large_blocks, seed));
            }
        }
        for (uint64_t run : {1u, 64u, 8192u}) add(graph_search(policy, run, seed));
        for (double period : {1, 3, 10}) add(sweeps(policy, period, seed));
        for (double rate : {30000, 1000}) add(streaming(policy, rate, seed));
        for (unsigned seconds : {5u, 20u}) add(moving_hot_set(policy, seconds, seed));
        add(two_groups(policy, seed));
    }
    return runs;
}

std::string number(double value, int digits) {
    char text[32];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return std::isnan(value) ? "-" : text;
}

void print_references(uint64_t seed) {
    const auto line = [](const char* name, double seconds, double to_90, double dram, uint64_t pages) {
        std::printf("%-46s %7s %7s %7s %9lu\n", name, number(seconds, 2).c_str(), number(to_90, 1).c_str(),
                    number(dram * 100, 1).c_str(), pages);
    };
    std::printf("%-46s %7s %7s %7s %9s\n", "micro-benchmark under others", "end s", "90 % s", "DRAM %", "moved");
    const double measured = 1 - published::kExpanderShare;
    line("published: no promotion (NUMAB0)", published::kStaysSeconds, NAN, 0, 0);
    line("published: the kernel's promotion (NUMAB2)", published::kKernelSeconds, NAN, NAN, published::kPages);
    const Reference scan = kernel_scan();
    line("model: a scan of 256 MiB/s", scan.seconds, scan.seconds_to_90, scan.dram, scan.pages_moved);
    line("published: the kernel's IBS source", published::kSeconds, NAN, measured, published::kPromoted);
    const Reference first = first_sample_moves(seed);
    line("model: each page with its first sample", first.seconds, first.seconds_to_90, first.dram, first.pages_moved);
    line("follows: DRAM from the start", published::kStaysSeconds * published::kDramCost, 0, 1, 0);
    std::printf("\n");
}

void print_row(std::FILE* file, const Run& run, double sample_ns) {
    const Result& r = run.result;
    const double samples_a_second = static_cast<double>(r.samples) / r.seconds;
    const double core = sample_ns > 0 ? samples_a_second * sample_ns * 1e-9 * 100 : NAN;
    const double table_pages = static_cast<double>(r.table_pages);
    std::fprintf(
        file, "%-46s %3u %6s %6s %6s %6s %6s %6s %9lu %9lu %7lu %9lu %6s %5s %7s %6s %5s %6s (%s)\n",
        run.scenario.name.c_str(), run.threshold, number(r.seconds, 1).c_str(), number(r.seconds_to_90, 1).c_str(),
        number(r.seconds_to_99, 1).c_str(), number(r.home * 100, 1).c_str(), number(r.dram * 100, 1).c_str(),
        number(r.late_dram * 100, 1).c_str(), r.pages_moved, r.pages_alone, r.calls, r.evictions,
        number(static_cast<double>(r.table_bytes) / 1e6, 1).c_str(),
        number(static_cast<double>(r.table_bytes) / table_pages, 2).c_str(), number(samples_a_second / 1000, 1).c_str(),
        number(core, 2).c_str(), number(run.scenario.ranks > 1 ? r.least_share : NAN, 2).c_str(),
        number(r.plan_us, 1).c_str(), number(r.plan_us_most, 0).c_str());
}

void print_table(const std::vector<Run>& runs, double sample_ns) {
    std::printf("%-46s %3s %6s %6s %6s %6s %6s %6s %9s %9s %7s %9s %6s %5s %7s %6s %5s %15s\n", "scenario", "thr",
                "end s", "90 % s", "99 % s", "home %", "DRAM %", "late %", "moved", "alone", "calls", "evicted",
                "tab MB", "B/pg", "ksmp/s", "core %", "share", "plan us (most)");
    for (const Run& run : runs) print_row(stdout, run, sample_ns);
    std::printf(
        "\nend: end of the program; 90 %%, 99 %%: of the pages that belong home were there; home: at the end; DRAM: "
        "share of all"
        "\naccesses that DRAM served; late: in the last tenth; alone: pages planned one by one; B/pg: bytes of the "
        "table for a"
        "\npage; share: what the rank with the fewest pages had moved of what that with the most had, at half; plan: "
        "on this"
        "\nmachine, with another simulation beside it\n");
}

int usage(int status) {
    std::fputs(kUsage, status == 0 ? stdout : stderr);
    return status;
}

int main_of(int argc, char** argv) {
    Options options;
    const option names[] = {{"seed", required_argument, nullptr, 's'},
                            {"threshold", required_argument, nullptr, 't'},
                            {"sample-ns", required_argument, nullptr, 'n'},
                            {"help", no_argument, nullptr, 'h'},
                            {}};
    for (int name; (name = getopt_long(argc, argv, "h", names, nullptr)) != -1;) {
        switch (name) {
            case 's':
                options.seed = std::strtoull(optarg, nullptr, 0);
                break;
            case 't':
                options.threshold = static_cast<unsigned>(std::strtoul(optarg, nullptr, 0));
                if (options.threshold < 1 || options.threshold > kFreqThresholdMax) return usage(2);
                break;
            case 'n':
                options.sample_ns = std::strtod(optarg, nullptr);
                break;
            case 'h':
                return usage(0);
            default:
                return usage(2);
        }
    }
    if (argc - optind > 1) return usage(2);
    if (optind < argc) options.filter = argv[optind];

    std::vector<Run> runs = scenarios(options);
    if (runs.empty()) {
        std::fprintf(stderr, "published_scale: no scenario holds \"%s\"\n", options.filter.c_str());
        return 2;
    }
    oneapi::tbb::parallel_for_each(runs, [&options](Run& run) {
        run.result = sim::run(run.scenario);
        print_row(stderr, run, options.sample_ns);    // as they come; the table is in order
    });
    if (options.filter.empty() || runs[0].scenario.name.find("micro") != std::string::npos)
        print_references(options.seed);
    print_table(runs, options.sample_ns);
    return 0;
}

}    // namespace
}    // namespace pghot::sim

int main(int argc, char** argv) { return pghot::sim::main_of(argc, argv); }
