// SPDX-License-Identifier: Apache-2.0
#include "allocator/placement.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <array>
#include <atomic>

#include "allocator/extent_registry.h"
#include "runtime/base/units.h"
#include "runtime/kernel/memory_policy.h"

// Set by the loader to the kernel's argument block (argc, argv, null, environment, null) before anything runs;
// `environ` is still null while constructors that come before libc's own run.
extern "C" void* __libc_stack_end;

namespace pghot {
namespace {

enum class ProblemKind : uint8_t { kNone, kBeingWritten, kText, kNoSuchNodes, kRefused };

// The first problem; later ones are not kept. Written by whoever changes kNone to kBeingWritten.
struct Problem {
    std::atomic<ProblemKind> kind{ProblemKind::kNone};
    PlacementTextError text{};
    Placement placement{};
    int error = 0;
};

// Owned by this file. `rules` is written once, before other threads exist for jemalloc; the rest is atomic.
struct State {
    PlacementRules rules;
    bool any_bound = false;    // some placement is not local
    // Nodes each placement binds to: 0 while unknown, when local, or after the kernel refused.
    std::array<std::atomic<uint64_t>, kMaxPlacements> nodes{};
    Problem problem;
};
constinit State state;

char** environment() {
    if (environ != nullptr) return environ;
    auto* block = static_cast<uintptr_t*>(__libc_stack_end);
    if (block == nullptr) return nullptr;
    const uintptr_t argument_count = block[0];
    return reinterpret_cast<char**>(block + 1 + argument_count + 1);
}

// getenv may be wrapped by another preload library that allocates: a deadlock under jemalloc's start lock.
std::string_view variable(std::string_view name) {
    char** entries = environment();
    for (; entries != nullptr && *entries != nullptr; ++entries) {
        std::string_view entry(*entries);
        if (entry.size() <= name.size() || !entry.starts_with(name) || entry[name.size()] != '=') continue;
        entry.remove_prefix(name.size() + 1);
        return entry;
    }
    return {};
}

void record_problem(ProblemKind kind, const Placement& placement, PlacementTextError text, int error) {
    ProblemKind none = ProblemKind::kNone;
    Problem& problem = state.problem;
    if (!problem.kind.compare_exchange_strong(none, ProblemKind::kBeingWritten)) return;
    problem.text = text;
    problem.placement = placement;
    problem.error = error;
    problem.kind.store(kind, std::memory_order_release);    // pairs with the load in placement_problem
}

sys::MemoryPreference preference_of(const Placement& placement) {
    return placement.place == BirthPlace::kInterleave ? sys::MemoryPreference::kInterleaved
                                                      : sys::MemoryPreference::kPreferred;
}

void bind(uintptr_t begin, size_t bytes, uint8_t index, bool move_present) {
    const uint64_t nodes = state.nodes[index].load(std::memory_order_seq_cst);
    if (nodes == 0) return;
    const Placement& placement = state.rules.placements[index];
    const long result = sys::set_memory_preference(begin, bytes, preference_of(placement), nodes, move_present);
    // Pages that cannot move (EIO: pinned by a device) keep their place; the policy itself stands.
    if (result == 0 || (move_present && result == -EIO)) return;
    // ENOMEM: too many mappings. It says nothing about the placement, which the next mapping may well get.
    if (result != -ENOMEM) state.nodes[index].store(0, std::memory_order_relaxed);
    record_problem(ProblemKind::kRefused, placement, {}, static_cast<int>(-result));
}

bool waits_for_nodes(const Placement& placement) {
    switch (placement.place) {
        case BirthPlace::kDram:
        case BirthPlace::kSlow:
            return true;
        case BirthPlace::kInterleave:
            return placement.nodes == 0;
        case BirthPlace::kLocal:
        case BirthPlace::kNode:
            return false;
    }
    return false;
}

uint64_t nodes_here(const Placement& placement, uint64_t dram_nodes, uint64_t slow_nodes) {
    switch (placement.place) {
        case BirthPlace::kDram:
            return dram_nodes;
        case BirthPlace::kSlow:
            return slow_nodes;
        case BirthPlace::kInterleave:
            return dram_nodes | slow_nodes;
        case BirthPlace::kLocal:
        case BirthPlace::kNode:
            break;
    }
    return 0;
}

// Appends to a span and stops at its end.
class Line {
public:
    explicit Line(std::span<char> storage) : storage_(storage) {}
    Line& operator<<(std::string_view text) {
        for (char c : text)
            if (size_ < storage_.size()) storage_[size_++] = c;
        return *this;
    }
    Line& operator<<(uint64_t number) {
        char digits[20];
        size_t count = 0;
        do digits[count++] = static_cast<char>('0' + number % 10);
        while ((number /= 10) != 0);
        while (count > 0) *this << std::string_view(&digits[--count], 1);
        return *this;
    }
    std::string_view view() const { return {storage_.data(), size_}; }

private:
    std::span<char> storage_;
    size_t size_ = 0;
};

std::string_view name_of(BirthPlace place) {
    switch (place) {
        case BirthPlace::kLocal:
            return "local";
        case BirthPlace::kDram:
            return "dram";
        case BirthPlace::kSlow:
            return "slow";
        case BirthPlace::kNode:
            return "node";
        case BirthPlace::kInterleave:
            return "interleave";
    }
    return "";
}

void append_placement(Line& line, const Placement& placement) {
    line << name_of(placement.place);
    char separator = ':';
    for (unsigned node = 0; node < 64; ++node) {
        if ((placement.nodes >> node & 1) == 0) continue;
        line << std::string_view(&separator, 1) << uint64_t{node};
        separator = ',';
    }
}

std::string_view error_name(int error) {
    switch (error) {
        case EPERM:
            return "EPERM (not permitted here)";
        case ENOSYS:
            return "ENOSYS (this kernel has no mbind)";
        case EINVAL:
            return "EINVAL (no memory on these nodes, or outside the cpuset)";
        case ENOMEM:
            return "ENOMEM (too many mappings)";
        default:
            return "";
    }
}

}    // namespace

void load_placement_rules() {
    if (getauxval(AT_SECURE) != 0) return;
    const std::string_view text = variable("PGHOT_PLACEMENT");
    if (text.size() >= kSettingTextBytes) return;    // read_tunables says that it is not used
    const PlacementTextError error = parse_placement_rules(text, state.rules);
    if (error.problem != nullptr) record_problem(ProblemKind::kText, {}, error, 0);
    for (uint8_t i = 0; i < state.rules.placement_count; ++i) {
        const Placement& placement = state.rules.placements[i];
        if (placement.place != BirthPlace::kLocal) state.any_bound = true;
        if (!waits_for_nodes(placement)) state.nodes[i].store(placement.nodes, std::memory_order_relaxed);
    }
}

const PlacementRules& placement_rules() { return state.rules; }

bool placement_needs_nodes() {
    for (const Placement& placement : state.rules.all_placements())
        if (waits_for_nodes(placement)) return true;
    return false;
}

void set_placement_nodes(uint64_t dram_nodes, uint64_t slow_nodes) {
    for (uint8_t i = 0; i < state.rules.placement_count; ++i) {
        const Placement& placement = state.rules.placements[i];
        if (!waits_for_nodes(placement)) continue;
        const uint64_t nodes = nodes_here(placement, dram_nodes, slow_nodes);
        if (nodes == 0) {
            record_problem(ProblemKind::kNoSuchNodes, placement, {}, 0);
            continue;
        }
        // Store before the walk: a mapping made meanwhile is either in the registry or sees the nodes.
        state.nodes[i].store(nodes, std::memory_order_seq_cst);
        extent_registry.for_each_run(i, [i](uintptr_t begin, size_t bytes) { bind(begin, bytes, i, true); });
    }
}

void bind_to_placement(uintptr_t begin, size_t bytes, uint8_t placement) {
    if (!state.any_bound) return;
    bind(begin, bytes, placement, false);
}

std::string_view placement_problem(std::span<char> storage) {
    const Problem& problem = state.problem;
    Line line(storage);
    switch (problem.kind.load(std::memory_order_acquire)) {
        case ProblemKind::kNone:
        case ProblemKind::kBeingWritten:
            break;
        case ProblemKind::kText:
            line << "PGHOT_PLACEMENT, character " << uint64_t{problem.text.position + 1} << ": " << problem.text.problem
                 << "; all of it is ignored";
            break;
        case ProblemKind::kNoSuchNodes:
            line << "PGHOT_PLACEMENT, ";
            append_placement(line, problem.placement);
            line << ": this machine has no such node; that memory is placed by first touch";
            break;
        case ProblemKind::kRefused:
            line << "PGHOT_PLACEMENT, ";
            append_placement(line, problem.placement);
            line << ": mbind: " << error_name(problem.error);
            if (error_name(problem.error).empty()) line << "errno " << uint64_t(problem.error);
            line << "; that memory is placed by first touch";
            break;
    }
    return line.view();
}

}    // namespace pghot
