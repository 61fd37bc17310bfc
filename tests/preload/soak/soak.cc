// SPDX-License-Identifier: Apache-2.0
// An allocator under stress that verifies every byte it wrote before a block goes, for as long as it is told:
//   soak [--seconds S] [--threads N] [--seed N] [--bytes BYTES]
// Threads that come and go allocate, resize, free each other's blocks and grow arrays; fork; pin, lock and protect
// pages; map and drop memory of their own. Knows nothing of libpghot. Prints one JSON object. Exit status: 0; 1 at the
// first wrong byte, here or in a child, said on standard error; 2 usage; 3 a call failed that must not; 4 a child died.
#include <dirent.h>
#include <fcntl.h>
#include <getopt.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "handover.h"
#include "pattern.h"
#include "tally.h"
#include "worker.h"

namespace {

using namespace soak;
using Clock = std::chrono::steady_clock;

struct Options {
    unsigned long seconds = 10;
    unsigned long threads = 4;
    unsigned long seed = static_cast<unsigned long>(Clock::now().time_since_epoch().count());
    unsigned long bytes = 256 << 20;
};

[[noreturn]] void usage() {
    std::fputs("usage: soak [--seconds S] [--threads N] [--seed N] [--bytes BYTES]\n", stderr);
    std::exit(2);
}

Options read_options(int argument_count, char** arguments) {
    static constexpr option kNames[] = {{"seconds", required_argument, nullptr, 's'},
                                        {"threads", required_argument, nullptr, 't'},
                                        {"seed", required_argument, nullptr, 'r'},
                                        {"bytes", required_argument, nullptr, 'b'},
                                        {}};
    Options options;
    for (int name; (name = getopt_long(argument_count, arguments, "", kNames, nullptr)) != -1;) {
        if (name == '?') usage();
        const unsigned long value = std::strtoul(optarg, nullptr, 10);
        if (name == 's') options.seconds = value;
        if (name == 't') options.threads = std::max(1ul, value);
        if (name == 'r') options.seed = value;
        if (name == 'b') options.bytes = value;
    }
    if (optind != argument_count) usage();
    return options;
}

// The names in a folder, sorted. Of /proc/self/fd the listing's own descriptor is among them.
std::vector<std::string> names_in(const char* folder) {
    std::vector<std::string> names;
    DIR* listing = opendir(folder);
    if (listing == nullptr) return names;
    while (const dirent* entry = readdir(listing))
        if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
    closedir(listing);
    std::sort(names.begin(), names.end());
    return names;
}

std::string name_of_thread(const std::string& thread) {
    char name[32] = {};
    std::FILE* file = std::fopen(("/proc/self/task/" + thread + "/comm").c_str(), "r");
    if (file == nullptr) return "";
    if (std::fgets(name, sizeof name, file) == nullptr) name[0] = '\0';
    std::fclose(file);
    name[std::strcspn(name, "\n")] = '\0';
    return name;
}

std::vector<std::string> names_of_threads() {
    std::vector<std::string> names;
    for (const std::string& thread : names_in("/proc/self/task")) names.push_back(name_of_thread(thread));
    return names;
}

std::string json(const std::vector<std::string>& names) {
    std::string text = "[";
    for (const std::string& name : names) text += (text.size() > 1 ? ",\"" : "\"") + name + "\"";
    return text + "]";
}

void run_threads(const Options& options) {
    Handover handover(options.bytes / 8);
    std::vector<std::unique_ptr<Worker>> workers;
    for (unsigned long i = 0; i < options.threads; ++i)
        workers.push_back(std::make_unique<Worker>(options.seed + i, options.bytes / options.threads, handover));
    const Clock::time_point end = Clock::now() + std::chrono::seconds(options.seconds);
    // Each worker goes through many threads: the next begins where one has ended.
    std::vector<std::thread> keepers;
    keepers.reserve(workers.size());
    for (const std::unique_ptr<Worker>& worker : workers)
        keepers.emplace_back([&worker = *worker, end] {
            while (!worker.is_done(end)) std::thread(&Worker::live_until, &worker, end).join();
        });
    for (std::thread& keeper : keepers) keeper.join();
}

void print(const Options& options, const std::vector<std::string>& before, const std::vector<std::string>& after) {
    std::printf("{\"seed\":%lu,\"seconds\":%lu,\"threads\":%lu,\"bytes\":%lu", options.seed, options.seconds,
                options.threads, options.bytes);
#define SOAK_X(name, meaning) std::printf(",\"" #name "\":%lu", tally.name.load());
    SOAK_TALLIES(SOAK_X)
#undef SOAK_X
    std::printf(",\"descriptors_before\":%s,\"descriptors_after\":%s,\"threads_left\":%s}\n", json(before).c_str(),
                json(after).c_str(), json(names_of_threads()).c_str());
}

}    // namespace

int main(int argument_count, char** arguments) {
    const Options options = read_options(argument_count, arguments);
    seed_of_run = options.seed;
    std::fprintf(stderr, "soak: seed %lu\n", options.seed);
    const std::vector<std::string> before = names_in("/proc/self/fd");
    run_threads(options);
    print(options, before, names_in("/proc/self/fd"));
    return 0;
}
