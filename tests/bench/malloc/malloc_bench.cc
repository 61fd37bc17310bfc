// SPDX-License-Identifier: Apache-2.0
// Times the allocator that the process has: the C library's, or one that was preloaded. It links none itself.
//   malloc_bench [--scale=S] [--benchmark_filter=REGEX] [--benchmark_format=json]
// --scale multiplies the work of every row. Printed for each row: wall time and CPU time (all threads, user and system)
// of an iteration. Names end in /real_time where wall time is what compares.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "rows.h"

namespace malloc_bench {
namespace {

// Takes --scale out of the arguments; 0 for a value that is no positive number.
double take_scale(int& count, char** arguments) {
    constexpr std::string_view option = "--scale=";
    double scale = 1;
    char** const end = arguments + count;
    char** const kept = std::remove_if(arguments + 1, end, [&](const char* argument) {
        if (!std::string_view(argument).starts_with(option)) return false;
        scale = std::strtod(argument + option.size(), nullptr);
        return true;
    });
    count = static_cast<int>(kept - arguments);
    return scale > 0 ? scale : 0;
}

void add_rows(const std::vector<Row>& rows, double scale) {
    for (const Row& row : rows) {
        const auto iterations = static_cast<std::int64_t>(static_cast<double>(row.iterations) * scale);
        auto* added = benchmark::RegisterBenchmark(row.name.c_str(), row.body)
                          ->Iterations(std::max<std::int64_t>(iterations, 1))
                          ->MeasureProcessCPUTime();
        if (row.by_wall_time) added->UseRealTime();
        if (row.threads > 1) added->Threads(row.threads);
    }
}

}    // namespace
}    // namespace malloc_bench

int main(int count, char** arguments) {
    const double scale = malloc_bench::take_scale(count, arguments);
    benchmark::Initialize(&count, arguments);
    if (scale == 0 || benchmark::ReportUnrecognizedArguments(count, arguments)) {
        std::fputs("usage: malloc_bench [--scale=S] [--benchmark_...]\n", stderr);
        return 2;
    }
    malloc_bench::add_rows(malloc_bench::small_block_rows(), scale);
    malloc_bench::add_rows(malloc_bench::large_block_rows(), scale);
    malloc_bench::add_rows(malloc_bench::handover_rows(), scale);
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
