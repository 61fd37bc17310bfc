// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tests/bench/arguments.h"
#include "tests/bench/memory.h"

namespace tier_bench {

struct GraphOptions {
    uint64_t vertices = 1u << 18;
    uint64_t edges = 8u << 18;    // undirected
    // Degree of the vertex of rank r is about r^-skew: degrees follow a power law of exponent 1 + 1/skew.
    double skew = 0.75;
    uint64_t seed = 1;
};
void declare(Arguments& arguments, GraphOptions& options);    // all but the seed

// What is stored for a vertex: a line, of which a search uses the first words and an application would use the rest.
struct alignas(kLineBytes) Vertex {
    std::atomic<uint64_t> found{0};    // number of the search << 32 | parent; the last search that found it
    uint32_t level = 0;                // of that search
};
static_assert(sizeof(Vertex) == kLineBytes);

// A random graph of given expected degrees (Chung and Lu): both ends of an edge are drawn in proportion to them.
// Vertices of high degree lie anywhere. A part holds the vertices [first, first + count) and the edges out of them; the
// parts of one seed and set of options together are the graph. Three arrays, and the list of edges that it was made
// from, which nobody uses any more (as after the construction step of Graph500). Owned and built by one thread; then
// read-only but for Vertex::found and level.
class Graph {
public:
    static constexpr uint64_t kSearchShift = 32;

    // Part `part` of `parts`, equal numbers of vertices. May throw std::bad_alloc.
    Graph(const GraphOptions& options, unsigned part, unsigned parts);

    uint32_t first() const { return first_; }
    uint32_t count() const { return count_; }
    unsigned part_of(uint32_t vertex) const { return vertex / count_; }
    Vertex& record(uint32_t vertex) { return vertices()[vertex - first_]; }
    std::span<const uint32_t> neighbours(uint32_t vertex) const {
        const uint32_t* offsets = offsets_words() + (vertex - first_);
        return {neighbour_words() + offsets[0], offsets[1] - offsets[0]};
    }
    // True when this call was the first to find the vertex in the search `number`, from 1. Any thread.
    bool find(uint32_t vertex, uint32_t number, uint32_t parent, uint32_t level);

    // A vertex of the whole graph that has edges with near certainty: an end of the `index`th edge.
    static std::vector<uint32_t> roots(const GraphOptions& options, size_t count);

    // The memory that a search uses: vertices, then neighbours; and the rest.
    std::span<std::byte> vertex_bytes() const { return vertices_->bytes(); }
    std::span<std::byte> neighbour_bytes() const { return neighbours_->bytes(); }
    std::vector<std::span<std::byte>> all_bytes() const;

private:
    struct Edge {
        uint64_t from, to;    // 8 bytes each, as Graph500's packed edges
    };
    bool is_mine(uint32_t vertex) const { return vertex >= first_ && vertex - first_ < count_; }
    void make_edges(const GraphOptions& options);
    void make_neighbours();
    std::span<Edge> edges() const;
    template <typename Function>
    void for_each_directed(Function function) const;    // function(from, to), from in this part
    Vertex* vertices() const { return reinterpret_cast<Vertex*>(vertices_->bytes().data()); }
    uint32_t* offsets_words() const { return reinterpret_cast<uint32_t*>(offsets_->bytes().data()); }
    uint32_t* neighbour_words() const { return reinterpret_cast<uint32_t*>(neighbours_->bytes().data()); }

    uint32_t first_;
    uint32_t count_;
    size_t edge_count_ = 0;    // with an end in this part
    std::unique_ptr<Memory> edges_;
    std::unique_ptr<Memory> vertices_;
    std::unique_ptr<Memory> offsets_;
    std::unique_ptr<Memory> neighbours_;
};

}    // namespace tier_bench
