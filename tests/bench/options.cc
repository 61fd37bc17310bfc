// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/options.h"

#include "tests/bench/modelled_time.h"

namespace tier_bench {
namespace {

const char* complaint(const Options& options) {
    if (options.groups > 2) return "--groups: 1 or 2";
    if (options.threads % options.groups != 0) return "--threads must be a multiple of --groups";
    if (options.bytes / kPageBytes < static_cast<uint64_t>(options.threads)) return "--bytes: at least a page a thread";
    if (options.accesses < static_cast<uint64_t>(options.threads)) return "--accesses: at least one a thread";
    if (options.shared_percent > 100) return "--shared-percent: at most 100";
    if (options.pages == PageSize::kHuge && options.bytes / static_cast<uint64_t>(options.groups) < kHugePageBytes)
        return "--bytes: at least a huge page a group";
    return nullptr;
}

}    // namespace

const char* name_of(Pattern pattern) { return pattern == Pattern::kUniform ? "uniform" : "zipf"; }
const char* name_of(ZipfOrder order) { return order == ZipfOrder::kScattered ? "scattered" : "sequential"; }
const char* name_of(MemoryKind kind) {
    switch (kind) {
        case MemoryKind::kMmap:
            return "mmap";
        case MemoryKind::kHeap:
            return "heap";
        case MemoryKind::kBss:
            break;
    }
    return "bss";
}

void declare(Arguments& arguments, Options& options) {
    arguments.integer("threads", options.threads, 1, "threads, pinned to the CPUs of their node");
    arguments.integer("cpu-node", options.cpu_node, 0, "node whose CPUs run the threads");
    declare(arguments, options.place);
    declare(arguments, options.common);
    arguments.bytes("bytes", options.bytes, "memory, all groups together");
    arguments.count("accesses", options.accesses, "accesses, all threads together");
    arguments.real("seconds", options.seconds, "above 0: run so long instead of a fixed count");
    arguments.choice("pattern", options.pattern,
                     {{name_of(Pattern::kUniform), Pattern::kUniform}, {name_of(Pattern::kZipf), Pattern::kZipf}},
                     "how pages are drawn; the line within the page is always uniform");
    arguments.real("zipf-exponent", options.zipf_exponent, "skew of zipf");
    arguments.choice("zipf-order", options.zipf_order,
                     {{name_of(ZipfOrder::kScattered), ZipfOrder::kScattered},
                      {name_of(ZipfOrder::kSequential), ZipfOrder::kSequential}},
                     "hot pages anywhere (a fixed permutation) or first");
    arguments.integer("groups", options.groups, 1,
                      "2: group g's threads on node g, each with its own half of the memory");
    arguments.bytes("shared-bytes", options.shared_bytes, "memory beside it that every thread uses, uniformly");
    arguments.integer("shared-percent", options.shared_percent, 0, "of each thread's accesses, where there is some");
    arguments.choice("memory", options.memory,
                     {{name_of(MemoryKind::kHeap), MemoryKind::kHeap},
                      {name_of(MemoryKind::kMmap), MemoryKind::kMmap},
                      {name_of(MemoryKind::kBss), MemoryKind::kBss}},
                     "malloc, a mapping of its own, or a static array");
    arguments.choice("pages", options.pages, {{"base", PageSize::kBase}, {"huge", PageSize::kHuge}},
                     "4 KiB pages, or 2 MiB pages by madvise where the kernel gives them");
    arguments.question("model", model_as_json, "print the constants of the modelled time as JSON");
    arguments.rule([&options] { return complaint(options); });
}

}    // namespace tier_bench
