// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tests/bench/accesses.h"
#include "tests/bench/arguments.h"
#include "tests/bench/session.h"

namespace tier_bench {

enum class Pattern { kUniform, kZipf };

struct Options {
    Common common;
    StartPlace place;
    int threads = 1;
    int groups = 1;      // with 2, group g's threads run on node g, each on its own half of the memory
    int cpu_node = 0;    // of all threads, when groups is 1
    uint64_t bytes = 128u << 20;
    uint64_t accesses = 10'000'000;    // all threads together
    double seconds = 0;                // above 0: run that long instead of a fixed number of accesses
    Pattern pattern = Pattern::kUniform;
    double zipf_exponent = 0.99;    // YCSB's
    ZipfOrder zipf_order = ZipfOrder::kScattered;
    uint64_t shared_bytes = 0;    // beside `bytes`: memory that all groups use
    int shared_percent = 25;      // of each thread's accesses, when there is shared memory
    MemoryKind memory = MemoryKind::kHeap;
    PageSize pages = PageSize::kBase;
};

void declare(Arguments& arguments, Options& options);

const char* name_of(Pattern pattern);
const char* name_of(ZipfOrder order);
const char* name_of(MemoryKind kind);

}    // namespace tier_bench
