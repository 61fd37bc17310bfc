// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/graph.h"

#include <algorithm>
#include <new>
#include <numeric>
#include <utility>

#include "tests/bench/accesses.h"
#include "tests/bench/random.h"

namespace tier_bench {
namespace {

std::unique_ptr<Memory> memory_of(size_t bytes) {
    const size_t pages = (bytes + kPageBytes - 1) / kPageBytes;
    auto memory = std::make_unique<Memory>(MemoryKind::kHeap, PageSize::kBase, pages * kPageBytes);
    if (!memory->valid()) throw std::bad_alloc();
    return memory;
}

// The edges of the whole graph, in the same order for every part.
class EdgeSource {
public:
    explicit EdgeSource(const GraphOptions& options)
        : ends_(options.vertices, options.skew, ZipfOrder::kScattered, options.seed), random_(mixed(options.seed)) {}

    // Two different vertices.
    std::pair<uint32_t, uint32_t> next() {
        while (true) {
            const uint32_t from = draw(), to = draw();
            if (from != to) return {from, to};
        }
    }

private:
    uint32_t draw() {
        random_ = next_random(random_);
        return static_cast<uint32_t>(ends_.draw(random_));
    }

    ZipfTable ends_;
    uint64_t random_;
};

}    // namespace

void declare(Arguments& arguments, GraphOptions& options) {
    arguments.bytes("vertices", options.vertices, "a power of two, at least 1K; K and M are powers of 1024");
    arguments.bytes("edges", options.edges, "undirected; K and M are powers of 1024");
    arguments.real("skew", options.skew, "the vertex of rank r has a degree of about r^-skew");
    arguments.rule([&options]() -> const char* {
        const uint64_t vertices = options.vertices;
        if (vertices < 1024 || vertices > uint64_t{1} << 28 || (vertices & (vertices - 1)) != 0)
            return "--vertices: a power of two from 1K to 256M";
        if (options.edges == 0 || options.edges > uint64_t{1} << 30) return "--edges: 1 to 1G";
        return nullptr;
    });
}

Graph::Graph(const GraphOptions& options, unsigned part, unsigned parts)
    : first_(static_cast<uint32_t>(options.vertices / parts * part)),
      count_(static_cast<uint32_t>(options.vertices / parts)),
      vertices_(memory_of(count_ * sizeof(Vertex))),
      offsets_(memory_of((count_ + 1) * sizeof(uint32_t))) {
    make_edges(options);
    for (uint32_t i = 0; i < count_; ++i) new (vertices() + i) Vertex;
    make_neighbours();
}

std::span<Graph::Edge> Graph::edges() const { return {reinterpret_cast<Edge*>(edges_->bytes().data()), edge_count_}; }

void Graph::make_edges(const GraphOptions& options) {
    edges_ = memory_of(options.edges * sizeof(Edge));    // what stays untouched costs nothing
    EdgeSource source(options);
    auto* edges = reinterpret_cast<Edge*>(edges_->bytes().data());
    for (uint64_t i = 0; i < options.edges; ++i) {
        const auto [a, b] = source.next();
        if (is_mine(a) || is_mine(b)) edges[edge_count_++] = {a, b};
    }
}

template <typename Function>
void Graph::for_each_directed(Function function) const {
    for (const Edge& edge : edges()) {
        const auto a = static_cast<uint32_t>(edge.from), b = static_cast<uint32_t>(edge.to);
        if (is_mine(a)) function(a, b);
        if (is_mine(b)) function(b, a);
    }
}

void Graph::make_neighbours() {
    uint32_t* offsets = offsets_words();
    std::fill_n(offsets, count_ + 1, 0u);
    for_each_directed([&](uint32_t from, uint32_t) { ++offsets[from - first_ + 1]; });
    std::partial_sum(offsets, offsets + count_ + 1, offsets);
    neighbours_ = memory_of(offsets[count_] * sizeof(uint32_t));
    std::vector<uint32_t> next(offsets, offsets + count_);
    for_each_directed([&](uint32_t from, uint32_t to) { neighbour_words()[next[from - first_]++] = to; });
}

bool Graph::find(uint32_t vertex, uint32_t number, uint32_t parent, uint32_t level) {
    Vertex& found_record = record(vertex);
    const uint64_t wanted = uint64_t{number} << kSearchShift | parent;
    // Whoever sets it owns level; others read it only after the level's barrier.
    uint64_t now = found_record.found.load(std::memory_order_relaxed);
    while (now >> kSearchShift != number) {
        if (!found_record.found.compare_exchange_weak(now, wanted, std::memory_order_relaxed)) continue;
        found_record.level = level;
        return true;
    }
    return false;
}

std::vector<uint32_t> Graph::roots(const GraphOptions& options, size_t count) {
    EdgeSource source(options);
    std::vector<uint32_t> roots;
    for (size_t i = 0; i < count; ++i) roots.push_back(source.next().first);
    return roots;
}

std::vector<std::span<std::byte>> Graph::all_bytes() const {
    const size_t used = (edge_count_ * sizeof(Edge) + kPageBytes - 1) / kPageBytes * kPageBytes;
    return {vertices_->bytes(), neighbours_->bytes(), offsets_->bytes(), edges_->bytes().first(used)};
}

}    // namespace tier_bench
