// SPDX-License-Identifier: Apache-2.0
// The shape of a language model's inference, layer by layer over weights that lie in expert blocks. Decode: each token
// reads, in every layer, the blocks of a few experts, all their lines once: bound by memory. Prefill: many tokens at a
// time use what was read, so there is much arithmetic for each line of every expert: bound by the processor. The two in
// turn, a phase each; the checksum is of all that was read.

#include <numaif.h>

#include <vector>

#include <fmt/core.h>

#include "tests/bench/cpus.h"
#include "tests/bench/random.h"
#include "tests/bench/session.h"

#ifndef MPOL_F_NUMA_BALANCING
#define MPOL_F_NUMA_BALANCING (1 << 13)
#endif

namespace tier_bench {
namespace {

constexpr const char* kName = "inference_bench";
constexpr int kPreferredMany = 5;    // MPOL_PREFERRED_MANY; an enumerator that older headers lack

struct InferenceOptions {
    Common common;
    StartPlace place;
    int cpu_node = 0;
    int prefer = -1;
    int layers = 16;
    int experts = 8;         // of a layer
    int experts_used = 2;    // by a token in each layer
    uint64_t expert_bytes = 1u << 20;
    int tokens = 3;
    int repetitions = 5;
    uint64_t operations = 4000;    // of prefill, for each page of the weights
};

const char* complaint(const InferenceOptions& options) {
    if (options.experts_used > options.experts) return "--experts-used: at most --experts";
    if (options.expert_bytes == 0 || options.expert_bytes % kPageBytes != 0) return "--expert-bytes: whole pages";
    return nullptr;
}

void declare(Arguments& arguments, InferenceOptions& options) {
    arguments.integer("cpu-node", options.cpu_node, 0, "node whose CPU runs the thread");
    declare(arguments, options.place);
    declare(arguments, options.common);
    arguments.integer(
        "prefer", options.prefer, -1,
        "memory policy of the process: MPOL_PREFERRED_MANY of this node, with MPOL_F_NUMA_BALANCING where "
        "the kernel has it; -1: none");
    arguments.integer("layers", options.layers, 1, "layers of the model");
    arguments.integer("experts", options.experts, 1, "of a layer");
    arguments.integer("experts-used", options.experts_used, 1, "by a token in each layer");
    arguments.bytes("expert-bytes", options.expert_bytes, "weights of an expert");
    arguments.integer("tokens", options.tokens, 1, "decoded in a repetition");
    arguments.integer("repetitions", options.repetitions, 1, "of prefill and decode");
    arguments.count("operations", options.operations, "of prefill for each page of the weights");
    arguments.rule([&options] { return complaint(options); });
}

// As numactl --preferred-many --balancing. Without the flag the kernel's own promotion would leave the process alone.
bool prefer(int node) {
    if (node < 0) return true;
    const unsigned long nodes = 1ul << node;
    return set_mempolicy(kPreferredMany | MPOL_F_NUMA_BALANCING, &nodes, 64) == 0 ||
           set_mempolicy(kPreferredMany, &nodes, 64) == 0;
}

class Model {
public:
    Model(const InferenceOptions& options, std::span<std::byte> weights)
        : options_(options), weights_(weights), random_(mixed(options.common.seed)) {
        // A different weight in each page, so that the checksum tells which were read.
        for (size_t page = 0; page < weights.size(); page += kPageBytes)
            *reinterpret_cast<uint64_t*>(&weights[page]) = mixed(page);
    }

    void decode() {
        for (int token = 0; token < options_.tokens; ++token)
            for (int layer = 0; layer < options_.layers; ++layer)
                for (const int expert : experts_of_a_token()) read(block(layer, expert));
    }

    void prefill() {
        for (int layer = 0; layer < options_.layers; ++layer)
            for (int expert = 0; expert < options_.experts; ++expert) multiply(block(layer, expert));
    }

    uint64_t checksum() const { return sum_; }

private:
    std::vector<int> experts_of_a_token() {
        std::vector<int> chosen, left(static_cast<size_t>(options_.experts));
        for (int i = 0; i < options_.experts; ++i) left[static_cast<size_t>(i)] = i;
        for (int i = 0; i < options_.experts_used; ++i) {
            random_ = next_random(random_);
            const size_t at = scaled(random_, left.size());
            chosen.push_back(left[at]);
            left.erase(left.begin() + static_cast<std::ptrdiff_t>(at));
        }
        return chosen;
    }

    std::span<std::byte> block(int layer, int expert) const {
        const size_t index =
            static_cast<size_t>(layer) * static_cast<size_t>(options_.experts) + static_cast<size_t>(expert);
        return weights_.subspan(index * options_.expert_bytes, options_.expert_bytes);
    }

    uint64_t word_at(std::span<std::byte> block, size_t offset) const {
        return *reinterpret_cast<const volatile uint64_t*>(&block[offset]);
    }

    void read(std::span<std::byte> block) {
        for (size_t line = 0; line < block.size(); line += kLineBytes) sum_ += word_at(block, line);
    }

    // A line of each page, and arithmetic on it: what a tile of a matrix product does with what it has read.
    void multiply(std::span<std::byte> block) {
        for (size_t page = 0; page < block.size(); page += kPageBytes) {
            uint64_t value = word_at(block, page) + page;
            for (uint64_t i = 0; i < options_.operations; ++i) {
                value = value * 0x9e3779b97f4a7c15ull + i;
                asm volatile("" : "+r"(value));    // each is done
            }
            sum_ += value;
        }
    }

    const InferenceOptions& options_;
    std::span<std::byte> weights_;
    uint64_t random_;
    uint64_t sum_ = 0;
};

int run(const InferenceOptions& options) {
    const std::vector<int> cpus = cpus_of(options.cpu_node);
    if (cpus.empty()) return fail(kName, fmt::format("node {} has no CPU", options.cpu_node));
    if (!prefer(options.prefer)) return fail_with_errno(kName, fmt::format("a policy for node {}", options.prefer));
    const size_t bytes =
        options.expert_bytes * static_cast<size_t>(options.layers) * static_cast<size_t>(options.experts);
    Memory weights(MemoryKind::kHeap, PageSize::kBase, bytes);
    if (!weights.valid() || !place_memory(weights.bytes(), options.place, options.cpu_node))
        return fail_with_errno(kName, fmt::format("{} bytes on node {}", bytes, name_of(options.place)));
    Session session(
        options.common, {cpus[0]}, {weights.bytes()},
        {{"hot", some_pages(weights.bytes(), PlacementWatch::kPagesOfSet), uint64_t{1} << options.cpu_node}});
    if (!session.ready()) return fail(kName, "the thread could not be pinned to its node's CPU");
    Model model(options, weights.bytes());
    for (int i = 1; i <= options.repetitions; ++i) {
        session.run(fmt::format("prefill {}", i), [&](size_t) { model.prefill(); });
        session.run(
            fmt::format("decode {}", i), [&](size_t) { model.decode(); },
            i == 1 ? std::vector<size_t>{0} : std::vector<size_t>{});
    }
    const JsonObject measured = session.finish();
    JsonObject json;
    json.add("workload", "inference").add("bytes", bytes).add("repetitions", options.repetitions);
    json.add("tokens", options.tokens).add("checksum", model.checksum());
    return print_result(options.common, json.joined(measured));
}

}    // namespace
}    // namespace tier_bench

int main(int argc, char** argv) {
    tier_bench::InferenceOptions options;
    tier_bench::Arguments arguments(tier_bench::kName, "prefill and decode of a model of expert blocks, in turn");
    declare(arguments, options);
    return tier_bench::run_program(tier_bench::kName, arguments, argc, argv, [&] { return tier_bench::run(options); });
}
