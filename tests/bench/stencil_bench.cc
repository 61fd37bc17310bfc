// SPDX-License-Identifier: Apache-2.0
// Sweeps over a grid in the manner of NAS BT: in each step a 7-point stencil of u gives the right-hand side, then
// recurrences run along x, y and z. The grid is cut into slabs, one a thread and node; only the planes at a cut are
// read by both. A cell is a line: five unknowns and padding.

#include <algorithm>
#include <array>
#include <barrier>
#include <numeric>
#include <vector>

#include <fmt/core.h>

#include "tests/bench/cpus.h"
#include "tests/bench/session.h"

namespace tier_bench {
namespace {

constexpr const char* kName = "stencil_bench";
constexpr size_t kRow = 64;               // cells along x: a page
constexpr size_t kPlane = kRow * kRow;    // cells of a z: 256 KiB

struct StencilOptions {
    Common common;
    StartPlace place;
    uint64_t bytes = 64u << 20;
    int steps = 3;
};

struct alignas(kLineBytes) Cell {
    std::array<double, 5> value;
};
static_assert(sizeof(Cell) == kLineBytes);

// Planes [begin, end) of the grid, and the node whose CPU works on them.
struct Slab {
    size_t begin, end;
    int node;
};

class Grid {
public:
    // The first half of the memory is u, the second the right-hand side; both of whole planes. Touches nothing.
    explicit Grid(std::span<std::byte> memory)
        : u_(reinterpret_cast<Cell*>(memory.data())),
          planes_(memory.size() / 2 / sizeof(Cell) / kPlane),
          rhs_(u_ + planes_ * kPlane) {}

    // A start that is the same for every run.
    void fill() {
        for (size_t i = 0; i < planes_ * kPlane; ++i) {
            u_[i].value.fill(static_cast<double>(i % 97) / 97);
            rhs_[i].value.fill(0);
        }
    }

    std::span<std::byte> u_of(Slab slab) const { return bytes_of(u_, slab); }
    std::span<std::byte> rhs_of(Slab slab) const { return bytes_of(rhs_, slab); }

    // Reads u of the slab and of the planes beside it.
    void compute_rhs(Slab slab) {
        for (size_t z = std::max<size_t>(slab.begin, 1); z < std::min(slab.end, planes_ - 1); ++z)
            for (size_t y = 1; y + 1 < kRow; ++y)
                for (size_t x = 1; x + 1 < kRow; ++x) {
                    const size_t i = index(x, y, z);
                    const double around = u_[i - 1].value[0] + u_[i + 1].value[0] + u_[i - kRow].value[0] +
                                          u_[i + kRow].value[0] + u_[i - kPlane].value[0] + u_[i + kPlane].value[0];
                    rhs_[i].value[0] = around / 6 - u_[i].value[0];
                }
    }

    // u += rhs / 4 + (u of the cell before) / 8, along one axis; `stride` is the distance of the cell before.
    void sweep_x(Slab slab) {
        for (size_t z = slab.begin; z < slab.end; ++z)
            for (size_t y = 0; y < kRow; ++y)
                for (size_t x = 1; x < kRow; ++x) relax(index(x, y, z), 1);
    }
    void sweep_y(Slab slab) {
        for (size_t z = slab.begin; z < slab.end; ++z)
            for (size_t x = 0; x < kRow; ++x)
                for (size_t y = 1; y < kRow; ++y) relax(index(x, y, z), kRow);
    }
    void sweep_z(Slab slab) {
        for (size_t z = slab.begin + 1; z < slab.end; ++z)
            for (size_t i = index(0, 0, z); i < index(0, 0, z + 1); ++i) relax(i, kPlane);
    }

    double sum() const {
        double sum = 0;
        for (size_t i = 0; i < planes_ * kPlane; i += kRow) sum += u_[i].value[0];
        return sum;
    }

private:
    static size_t index(size_t x, size_t y, size_t z) { return z * kPlane + y * kRow + x; }
    static std::span<std::byte> bytes_of(Cell* cells, Slab slab) {
        return std::as_writable_bytes(std::span(cells + slab.begin * kPlane, (slab.end - slab.begin) * kPlane));
    }
    void relax(size_t i, size_t stride) {
        u_[i].value[0] = (u_[i].value[0] + u_[i - stride].value[0] / 8) / 2 + rhs_[i].value[0] / 4;
    }

    Cell* u_;
    size_t planes_;
    Cell* rhs_;
};

void declare(Arguments& arguments, StencilOptions& options) {
    declare(arguments, options.place);
    declare(arguments, options.common);
    arguments.bytes("bytes", options.bytes, "both arrays, u and the right-hand side");
    arguments.integer("steps", options.steps, 1, "steps; each is one stencil and three sweeps");
    arguments.rule([&options]() -> const char* {
        return options.bytes < 8 * kPlane * sizeof(Cell) ? "--bytes: at least 2M, four planes of each array" : nullptr;
    });
}

std::vector<Slab> slabs_of(size_t planes, const std::vector<int>& nodes) {
    std::vector<Slab> slabs;
    const size_t height = planes / nodes.size();
    for (const int node : nodes) slabs.push_back({slabs.size() * height, (slabs.size() + 1) * height, node});
    return slabs;
}

// Each slab's part of u and of the right-hand side.
std::vector<std::span<std::byte>> parts_of(const Grid& grid, const std::vector<Slab>& slabs) {
    std::vector<std::span<std::byte>> parts;
    for (const Slab& slab : slabs) {
        parts.push_back(grid.u_of(slab));
        parts.push_back(grid.rhs_of(slab));
    }
    return parts;
}

std::vector<WatchedSet> watched_sets(const Grid& grid, const std::vector<Slab>& slabs) {
    std::vector<WatchedSet> sets;
    for (const Slab& slab : slabs) {
        std::vector<void*> pages = some_pages(grid.u_of(slab), PlacementWatch::kPagesOfSet / 2);
        const std::vector<void*> more = some_pages(grid.rhs_of(slab), PlacementWatch::kPagesOfSet / 2);
        pages.insert(pages.end(), more.begin(), more.end());
        sets.push_back({fmt::format("slab {}", sets.size()), std::move(pages), uint64_t{1} << slab.node});
    }
    return sets;
}

int run(const StencilOptions& options) {
    const std::vector<int> nodes = nodes_with_cpus();
    const size_t planes = options.bytes / 2 / sizeof(Cell) / kPlane / nodes.size() * nodes.size();
    Memory memory(MemoryKind::kHeap, PageSize::kBase, planes * kPlane * sizeof(Cell) * 2);
    if (!memory.valid()) return fail_with_errno(kName, fmt::format("{} bytes", options.bytes));
    Grid grid(memory.bytes());
    const std::vector<Slab> slabs = slabs_of(planes, nodes);
    for (const Slab& slab : slabs)
        for (const auto part : {grid.u_of(slab), grid.rhs_of(slab)})
            if (!place_memory(part, options.place, slab.node))
                return fail_with_errno(kName, fmt::format("memory on node {}", name_of(options.place)));
    grid.fill();
    std::vector<int> cpus;
    for (const int node : nodes) cpus.push_back(cpus_of(node)[0]);
    Session session(options.common, cpus, parts_of(grid, slabs), watched_sets(grid, slabs));
    if (!session.ready()) return fail(kName, "a thread could not be pinned to its node's CPU");
    std::vector<size_t> every_set(slabs.size());
    std::iota(every_set.begin(), every_set.end(), size_t{0});
    std::barrier all(static_cast<std::ptrdiff_t>(cpus.size()));
    const auto step = [&](size_t thread) {
        const Slab slab = slabs[thread];
        grid.compute_rhs(slab);
        all.arrive_and_wait();    // the neighbours have read this slab's edge
        grid.sweep_x(slab);
        grid.sweep_y(slab);
        grid.sweep_z(slab);
    };
    for (int i = 1; i <= options.steps; ++i)
        session.run(fmt::format("step {}", i), step, i == 1 ? every_set : std::vector<size_t>{});
    const JsonObject measured = session.finish();
    JsonObject json;
    json.add("workload", "stencil").add("bytes", memory.bytes().size()).add("steps", options.steps);
    json.add("checksum", fmt::format("{:.17g}", grid.sum()));
    return print_result(options.common, json.joined(measured));
}

}    // namespace
}    // namespace tier_bench

int main(int argc, char** argv) {
    tier_bench::StencilOptions options;
    tier_bench::Arguments arguments(tier_bench::kName, "stencil and sweeps over a grid, a slab a node");
    declare(arguments, options);
    return tier_bench::run_program(tier_bench::kName, arguments, argc, argv, [&] { return tier_bench::run(options); });
}
