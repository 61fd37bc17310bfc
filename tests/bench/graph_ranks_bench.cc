// SPDX-License-Identifier: Apache-2.0
// The searches of graph_bench by MPI ranks, a part of the vertices each: edges that lead to another rank's vertices are
// sent to it, level by level. Each rank prints its own result (--output); the searches of all begin and end together.

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <numeric>
#include <vector>

#include <fmt/core.h>

#include "tests/bench/cpus.h"
#include "tests/bench/graph.h"
#include "tests/bench/session.h"

namespace tier_bench {
namespace {

constexpr const char* kName = "graph_ranks_bench";

struct Options {
    Common common;
    GraphOptions graph;
    int searches = 3;
};

struct Visit {
    uint32_t vertex, parent;
};

// This rank's part of one search. One thread.
class RankSearch {
public:
    RankSearch(Graph& graph, uint32_t number, int rank, int ranks)
        : graph_(graph), number_(number), rank_(static_cast<unsigned>(rank)), outgoing_(static_cast<size_t>(ranks)) {}

    // Vertices found here.
    uint64_t run(uint32_t root) {
        std::vector<uint32_t> level_vertices;
        if (graph_.part_of(root) == rank_) visit({root, root}, level_vertices);
        uint64_t found = 0;
        while (any_rank_has(level_vertices.size())) {
            found += level_vertices.size();
            ++level_;
            std::vector<uint32_t> next;
            for (const uint32_t vertex : level_vertices) expand(vertex, next);
            for (const Visit& visited : exchange()) visit(visited, next);
            level_vertices.swap(next);
        }
        return found;
    }

private:
    static bool any_rank_has(size_t vertices) {
        uint64_t mine = vertices, all = 0;
        MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
        return all > 0;
    }

    void visit(Visit visited, std::vector<uint32_t>& next) {
        if (graph_.find(visited.vertex, number_, visited.parent, level_)) next.push_back(visited.vertex);
    }

    void expand(uint32_t vertex, std::vector<uint32_t>& next) {
        for (const uint32_t neighbour : graph_.neighbours(vertex)) {
            const unsigned owner = graph_.part_of(neighbour);
            if (owner == rank_)
                visit({neighbour, vertex}, next);
            else
                outgoing_[owner].push_back({neighbour, vertex});
        }
    }

    // What the others have for this rank, against what this one has for them.
    std::vector<Visit> exchange() {
        constexpr int kWords = sizeof(Visit) / sizeof(uint32_t);
        const size_t ranks = outgoing_.size();
        std::vector<int> sent(ranks), send_at(ranks), received(ranks), receive_at(ranks);
        std::vector<Visit> out;
        for (size_t i = 0; i < ranks; ++i) {
            send_at[i] = static_cast<int>(out.size()) * kWords;
            sent[i] = static_cast<int>(outgoing_[i].size()) * kWords;
            out.insert(out.end(), outgoing_[i].begin(), outgoing_[i].end());
            outgoing_[i].clear();
        }
        MPI_Alltoall(sent.data(), 1, MPI_INT, received.data(), 1, MPI_INT, MPI_COMM_WORLD);
        std::exclusive_scan(received.begin(), received.end(), receive_at.begin(), 0);
        std::vector<Visit> in(static_cast<size_t>(receive_at.back() + received.back()) / kWords);
        MPI_Alltoallv(out.data(), sent.data(), send_at.data(), MPI_UINT32_T, in.data(), received.data(),
                      receive_at.data(), MPI_UINT32_T, MPI_COMM_WORLD);
        return in;
    }

    Graph& graph_;
    const uint32_t number_;
    const unsigned rank_;
    uint32_t level_ = 0;
    std::vector<std::vector<Visit>> outgoing_;    // for each rank
};

int run_rank(Options options, int rank, int ranks) {
    options.graph.seed = options.common.seed;
    if (options.graph.vertices % static_cast<uint64_t>(ranks) != 0)
        return fail(kName, fmt::format("--vertices is no multiple of {} ranks", ranks));
    const std::vector<int> nodes = nodes_with_cpus();
    const int node = nodes[static_cast<size_t>(rank) % nodes.size()];
    const std::vector<int> cpus = cpus_of(node);
    const OnNode there(node);
    Graph graph(options.graph, static_cast<unsigned>(rank), static_cast<unsigned>(ranks));
    MPI_Barrier(MPI_COMM_WORLD);    // nobody is stopped while another needs it
    Session session(
        options.common, {cpus[static_cast<size_t>(rank) / nodes.size() % cpus.size()]}, graph.all_bytes(),
        {{"vertices", some_pages(graph.vertex_bytes(), PlacementWatch::kPagesOfSet), uint64_t{1} << node},
         {"neighbours", some_pages(graph.neighbour_bytes(), PlacementWatch::kPagesOfSet), uint64_t{1} << node}});
    if (!session.ready()) return fail(kName, "the thread could not be pinned to its node's CPU");
    const std::vector<uint32_t> roots = Graph::roots(options.graph, static_cast<size_t>(options.searches));
    uint64_t found = 0;
    for (uint32_t i = 0; i < roots.size(); ++i) {
        RankSearch search(graph, i + 1, rank, ranks);
        MPI_Barrier(MPI_COMM_WORLD);
        session.run(
            fmt::format("search {}", i + 1), [&](size_t) { found += search.run(roots[i]); },
            i == 0 ? std::vector<size_t>{0, 1} : std::vector<size_t>{});
    }
    uint64_t found_by_all = 0;
    MPI_Allreduce(&found, &found_by_all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    const JsonObject measured = session.finish();
    JsonObject json;
    json.add("workload", "graph by ranks").add("rank", rank).add("ranks", ranks);
    json.add("vertices", options.graph.vertices).add("edges", options.graph.edges).add("checksum", found_by_all);
    return print_result(options.common, json.joined(measured));
}

// The searches call MPI from the session's thread while main waits.
int run(const Options& options) {
    int provided = 0, rank = 0, ranks = 1;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int status = provided < MPI_THREAD_SERIALIZED ? fail(kName, "this MPI serves only the first thread")
                                                        : run_rank(options, rank, ranks);
    if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
    MPI_Finalize();
    return status;
}

}    // namespace
}    // namespace tier_bench

int main(int argc, char** argv) {
    tier_bench::Options options;
    tier_bench::Arguments arguments(tier_bench::kName, "breadth-first searches over a power-law graph, by MPI ranks");
    declare(arguments, options.common);
    declare(arguments, options.graph);
    arguments.integer("searches", options.searches, 1, "one after the other, from different roots");
    return tier_bench::run_program(tier_bench::kName, arguments, argc, argv, [&] { return tier_bench::run(options); });
}
