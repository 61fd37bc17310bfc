// SPDX-License-Identifier: Apache-2.0
// Breadth-first searches over a power-law graph by threads, level by level, as Graph500's: each level's vertices are
// shared out among the threads, whoever sees a vertex first becomes its parent. With --stop the program stops after the
// construction, so that its memory can be moved, and searches when it is continued.

#include <algorithm>
#include <atomic>
#include <barrier>
#include <numeric>
#include <vector>

#include <fmt/core.h>

#include "tests/bench/cpus.h"
#include "tests/bench/graph.h"
#include "tests/bench/session.h"

namespace tier_bench {
namespace {

constexpr const char* kName = "graph_bench";

// One search. Each thread calls run(its number); the object must outlive them all.
class Search {
public:
    Search(Graph& graph, uint32_t number, uint32_t root, size_t threads)
        : graph_(graph),
          number_(number),
          next_(threads),
          level_barrier_(static_cast<std::ptrdiff_t>(threads), Turn{*this}) {
        level_vertices_.reserve(graph.count());
        for (auto& next : next_) next.reserve(graph.count());
        graph_.find(root, number_, root, 0);
        level_vertices_.push_back(root);
        found_ = 1;
    }

    void run(size_t thread) {
        while (!level_vertices_.empty()) {
            while (true) {
                const size_t begin = taken_.fetch_add(kShare, std::memory_order_relaxed);
                if (begin >= level_vertices_.size()) break;
                const size_t end = std::min(begin + kShare, level_vertices_.size());
                for (size_t i = begin; i < end; ++i) expand(level_vertices_[i], next_[thread]);
            }
            level_barrier_.arrive_and_wait();
        }
    }

    uint64_t found() const { return found_; }

private:
    static constexpr size_t kShare = 32;    // vertices a thread takes at a time

    // Between two levels, in one thread while the others wait. The reserved vectors do not allocate.
    struct Turn {
        Search& search;
        void operator()() noexcept { search.turn(); }
    };
    void turn() noexcept {
        level_vertices_.clear();
        for (auto& next : next_) {
            level_vertices_.insert(level_vertices_.end(), next.begin(), next.end());
            next.clear();
        }
        found_ += level_vertices_.size();
        ++level_;
        taken_ = 0;
    }

    void expand(uint32_t vertex, std::vector<uint32_t>& next) {
        for (const uint32_t neighbour : graph_.neighbours(vertex))
            if (graph_.find(neighbour, number_, vertex, level_ + 1)) next.push_back(neighbour);
    }

    Graph& graph_;
    const uint32_t number_;
    uint32_t level_ = 0;
    std::atomic<size_t> taken_{0};
    std::vector<uint32_t> level_vertices_;
    std::vector<std::vector<uint32_t>> next_;    // of each thread
    uint64_t found_ = 0;
    std::barrier<Turn> level_barrier_;
};

struct Options {
    Common common;
    GraphOptions graph;
    int searches = 3;
};

// Levels that a search without threads gives; they do not depend on who was first.
bool levels_are_right(Graph& graph, uint32_t number, uint32_t root) {
    for (uint32_t vertex = 0; vertex < graph.count(); ++vertex) {
        const Vertex& record = graph.record(vertex);
        const uint64_t found = record.found.load(std::memory_order_relaxed);
        if (found >> Graph::kSearchShift != number) continue;
        const auto parent = static_cast<uint32_t>(found);
        if (vertex == root ? record.level != 0 : graph.record(parent).level + 1 != record.level) return false;
        const auto neighbours = graph.neighbours(vertex);
        if (vertex != root && std::find(neighbours.begin(), neighbours.end(), parent) == neighbours.end()) return false;
    }
    return true;
}

int run(Options options) {
    options.graph.seed = options.common.seed;
    std::vector<int> cpus;
    uint64_t nodes = 0;
    for (const int node : nodes_with_cpus()) {
        cpus.push_back(cpus_of(node)[0]);
        nodes |= uint64_t{1} << node;
    }
    const OnNode there(nodes_with_cpus()[0]);    // who builds the graph touches it first
    Graph graph(options.graph, 0, 1);
    Session session(options.common, cpus, graph.all_bytes(),
                    {{"vertices", some_pages(graph.vertex_bytes(), PlacementWatch::kPagesOfSet), nodes},
                     {"neighbours", some_pages(graph.neighbour_bytes(), PlacementWatch::kPagesOfSet), nodes}});
    if (!session.ready()) return fail(kName, "a thread could not be pinned to its node's CPU");
    const std::vector<uint32_t> roots = Graph::roots(options.graph, static_cast<size_t>(options.searches));
    uint64_t found = 0;
    for (uint32_t i = 0; i < roots.size(); ++i) {
        Search search(graph, i + 1, roots[i], session.threads());
        session.run(
            fmt::format("search {}", i + 1), [&](size_t thread) { search.run(thread); },
            i == 0 ? std::vector<size_t>{0, 1} : std::vector<size_t>{});
        found += search.found();
    }
    const JsonObject measured = session.finish();
    if (!levels_are_right(graph, static_cast<uint32_t>(roots.size()), roots.back()))
        return fail(kName, "the last search's tree is wrong");
    JsonObject json;
    json.add("workload", "graph").add("vertices", options.graph.vertices).add("edges", options.graph.edges);
    json.add("checksum", found);
    return print_result(options.common, json.joined(measured));
}

}    // namespace
}    // namespace tier_bench

int main(int argc, char** argv) {
    tier_bench::Options options;
    tier_bench::Arguments arguments(tier_bench::kName, "breadth-first searches over a power-law graph, by threads");
    declare(arguments, options.common);
    declare(arguments, options.graph);
    arguments.integer("searches", options.searches, 1, "one after the other, from different roots");
    return tier_bench::run_program(tier_bench::kName, arguments, argc, argv, [&] { return tier_bench::run(options); });
}
