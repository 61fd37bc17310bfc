// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace tier_bench {

enum class Pattern { kUniform, kZipf };
enum class ZipfOrder { kScattered, kSequential };
enum class MemoryKind { kMmap, kHeap, kBss };

struct Options {
    int threads = 1;
    int groups = 1;         // with 2, group g's threads run on node g, each on its own half of the memory
    int cpu_node = 0;       // of all threads, when groups is 1
    int memory_node = 2;    // where the memory lies when the accesses start
    uint64_t bytes = 128u << 20;
    uint64_t accesses = 10'000'000;    // all threads together
    double seconds = 0;                // above 0: run that long instead of a fixed number of accesses
    Pattern pattern = Pattern::kUniform;
    double zipf_exponent = 0.99;    // YCSB's
    ZipfOrder zipf_order = ZipfOrder::kScattered;
    MemoryKind memory = MemoryKind::kHeap;
    uint64_t seed = 1;
};

enum class Parsed { kRun, kDone, kUsageError };

// Reads argv; prints help or the model (kDone), or what is wrong (kUsageError).
Parsed parse_options(int argc, char** argv, Options& options);

const char* name_of(Pattern pattern);
const char* name_of(ZipfOrder order);
const char* name_of(MemoryKind kind);

}    // namespace tier_bench
