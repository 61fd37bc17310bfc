// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/published_scenarios.h"

#include <algorithm>
#include <memory>

namespace pghot::sim {
namespace {

constexpr uint64_t kPagesPerGiB = 262144;
constexpr double kSamplesPerSecond = 2115;    // of a thread, published mean

Settings settings_for(const PolicyParameters& policy, uint64_t pages, uint64_t seed) {
    Settings settings{.policy = policy,
                      .pages = pages,
                      .call_ns = 100000,
                      .page_ns = 2000,
                      .drain_ms = 20,    // what the library comes to while samples come
                      .plan_ms = 20,
                      .seed = seed};
    for (uint64_t page = 0; page < pages; page += kPagesPerGiB)
        settings.blocks.push_back({page, std::min(kPagesPerGiB, pages - page)});
    settings.economy = {.page_ns = settings.page_ns,
                        .sample_gain_ns = static_cast<int64_t>(published::kSampleGainNs),
                        .gain_known = true};
    return settings;
}

// Threads of node 0, all alike.
void add_threads(Program& program, unsigned count, double samples_per_second,
                 const std::function<uint64_t(Random&)>& page) {
    for (unsigned i = 0; i < count; ++i)
        program.threads.push_back(
            {.cpu = static_cast<uint16_t>(2 * i % 128), .samples_per_second = samples_per_second, .page = page});
}

// 19 of 20 accesses to the one, the others to the other.
std::function<uint64_t(Random&)> mostly(std::function<uint64_t(Random&)> hot, std::function<uint64_t(Random&)> rest) {
    return [hot = std::move(hot), rest = std::move(rest)](Random& random) {
        return random() % 20 != 0 ? hot(random) : rest(random);
    };
}

}    // namespace

Reference first_sample_moves(uint64_t seed) {
    Random random(seed);
    std::vector<bool> home(published::kPages);
    Reference reference;
    uint64_t dram = 0;
    for (uint64_t sample = 0; sample < published::kSamples; ++sample) {
        const uint64_t page = random() % published::kPages;
        dram += home[page];
        // Accesses between two samples are served as the pages are spread by now.
        const double local = static_cast<double>(reference.pages_moved) / published::kPages;
        reference.seconds +=
            published::kStaysSeconds / published::kSamples * (1 - local + local * published::kDramCost);
        reference.pages_moved += !home[page];
        home[page] = true;
        if (reference.seconds_to_90 == 0 && reference.pages_moved >= published::kPages / 10 * 9)
            reference.seconds_to_90 = reference.seconds;
    }
    reference.dram = static_cast<double>(dram) / published::kSamples;
    return reference;
}

Reference kernel_scan() {
    constexpr double kStep = 0.001;
    constexpr double kScanSeconds = static_cast<double>(published::kPages * kPageBytes) / (256 * kMiB);
    Reference reference{.seconds_to_90 = 1 + 0.9 * kScanSeconds, .pages_moved = published::kPages};
    double left = published::kStaysSeconds;    // of the work, in seconds on the expander
    double dram_work = 0;
    for (; left > 0; reference.seconds += kStep) {
        const double local = std::clamp((reference.seconds - 1) / kScanSeconds, 0.0, 1.0);
        const double work = kStep / (1 - local + local * published::kDramCost);
        left -= work;
        dram_work += work * local;
    }
    reference.dram = dram_work / published::kStaysSeconds;
    return reference;
}

Scenario micro_benchmark(const PolicyParameters& policy, uint64_t seed) {
    return {.name = "micro-benchmark, 8 GiB, 64 threads",
            .seconds = published::kStaysSeconds,
            .samples = published::kSamples,
            .program = [=](unsigned) {
                Program program;
                program.settings = settings_for(policy, published::kPages, seed);
                program.settings.dram_cost = published::kDramCost;
                add_threads(program, published::kThreads, published::kSamplesPerSecond, uniform(0, published::kPages));
                program.wanted = {{0, published::kPages}};
                return program;
            }};
}

Scenario job_of_ranks(const PolicyParameters& policy, unsigned ranks, uint64_t pages_a_rank, uint32_t rate_limit_mbps,
                      uint64_t seed) {
    return {.name = std::to_string(ranks) + " ranks, " + std::to_string(ranks * pages_a_rank / kPagesPerGiB) +
                    " GiB, " + std::to_string(rate_limit_mbps) + " MiB/s",
            .seconds = 45,
            .ranks = ranks,
            .program = [=](unsigned rank) {
                Program program;
                program.settings = settings_for(policy, pages_a_rank, seed);
                program.settings.rate_limit_mbps = rate_limit_mbps;
                program.threads = {{.cpu = static_cast<uint16_t>(rank % 128), .page = uniform(0, pages_a_rank)}};
                program.wanted = {{0, pages_a_rank, static_cast<int16_t>(rank % 2)}};
                return program;
            }};
}

Scenario large_program(const PolicyParameters& policy, uint64_t pages, uint64_t hot_pages, uint64_t heat_bytes,
                       bool large_blocks, uint64_t seed) {
    const std::string hot = hot_pages == pages ? "uniform" : std::to_string(hot_pages / kPagesPerGiB) + " GiB hot";
    return {.name = std::to_string(pages / kPagesPerGiB) + " GiB" + (large_blocks ? ", " : " small blocks, ") + hot +
                    ", table " + std::to_string(heat_bytes / kMiB) + " MiB",
            .seconds = 60,
            .program = [=](unsigned) {
                Program program;
                program.settings = settings_for(policy, pages, seed);
                if (!large_blocks) program.settings.blocks.clear();
                program.settings.heat_chunks =
                    heat_bytes * 1000 / (HeatTable::bytes_for(1001) - HeatTable::bytes_for(1));
                add_threads(program, 64, kSamplesPerSecond, mostly(uniform(0, hot_pages), uniform(0, pages)));
                program.wanted = {{0, hot_pages}};
                return program;
            }};
}

Scenario graph_search(const PolicyParameters& policy, uint64_t run, uint64_t seed) {
    return {.name = "graph search, 100 GB, hot pages in runs of " + std::to_string(run),
            .seconds = 180,
            .program = [=](unsigned) {
                Program program;
                program.settings = settings_for(policy, kGraphPages, seed);
                for (uint16_t rank = 0; rank < 128; ++rank)
                    program.threads.push_back({.cpu = rank,
                                               .samples_per_second = 24.48e6 / 180 / 128,
                                               .page = power_law(0, kGraphPages, kGraphExponent, run)});
                program.wanted = {{0, kGraphPages}};
                return program;
            }};
}

Scenario sweeps(const PolicyParameters& policy, double period, uint64_t seed) {
    constexpr uint64_t kPages = uint64_t{160} * 1000 * 1000 * 1000 / 16 / kPageBytes;
    return {
        .name = "BT, 160 GB, 16 ranks, a sweep in " + std::to_string(static_cast<int>(period)) + " s",
        .seconds = 120,
        .ranks = 16,
        .program = [=](unsigned rank) {
            Program program;
            program.settings = settings_for(policy, kPages, seed);
            program.threads = {{.cpu = static_cast<uint16_t>(rank),
                                .page = sweep(0, kPages, static_cast<double>(kPages) / (period * kSamplesPerSecond))}};
            program.wanted = {{0, kPages, static_cast<int16_t>(rank % 2)}};
            return program;
        }};
}

Scenario streaming(const PolicyParameters& policy, double mb_per_second, uint64_t seed) {
    constexpr uint64_t kPages = 4 * kPagesPerGiB;    // of a thread
    constexpr unsigned kThreads = 64;
    const double pages_per_sample = mb_per_second * 1e6 / kPageBytes / kThreads / kSamplesPerSecond;
    const double once = static_cast<double>(kPages) / (pages_per_sample * kSamplesPerSecond);
    return {.name = "streaming once, " + std::to_string(static_cast<int>(mb_per_second)) + " MB/s",
            .seconds = std::min(60.0, std::floor(once * 0.99 * 10) / 10),
            .program = [=](unsigned) {
                Program program;
                program.settings = settings_for(policy, kThreads * kPages, seed);
                for (unsigned i = 0; i < kThreads; ++i)
                    add_threads(program, 1, kSamplesPerSecond, sweep(i * kPages, kPages, pages_per_sample));
                return program;
            }};
}

Scenario moving_hot_set(const PolicyParameters& policy, unsigned seconds, uint64_t seed) {
    constexpr uint64_t kPages = 8 * kPagesPerGiB;
    constexpr uint64_t kHot = kPagesPerGiB / 2;
    const auto place = std::make_shared<uint64_t>(0);
    return {.name = "512 MiB hot of 8 GiB, others every " + std::to_string(seconds) + " s",
            .seconds = 60,
            .program =
                [=](unsigned) {
                    Program program;
                    program.settings = settings_for(policy, kPages, seed);
                    const auto hot = [place](Random& random) { return *place + random() % kHot; };
                    add_threads(program, 16, kSamplesPerSecond, mostly(hot, uniform(0, kPages)));
                    return program;
                },
            .every_second = [=](unsigned second) { *place = second / seconds % 16 * kHot; }};
}

Scenario two_groups(const PolicyParameters& policy, uint64_t seed) {
    constexpr uint64_t kOwn = 3 * kPagesPerGiB;
    constexpr uint64_t kShared = 2 * kPagesPerGiB;
    return {.name = "two groups, 3 GiB each, 2 GiB shared", .seconds = 60, .program = [=](unsigned) {
                Program program;
                program.settings = settings_for(policy, 2 * kOwn + kShared, seed);
                for (uint16_t cpu = 0; cpu < 64; ++cpu) {
                    const auto own = uniform(cpu % 2 * kOwn, kOwn);
                    const auto shared = uniform(2 * kOwn, kShared);
                    program.threads.push_back({.cpu = cpu, .page = [=](Random& random) {
                                                   return random() % 10 < 7 ? own(random) : shared(random);
                                               }});
                }
                program.wanted = {{0, kOwn, 0}, {kOwn, kOwn, 1}, {2 * kOwn, kShared}};
                return program;
            }};
}

}    // namespace pghot::sim
