// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "runtime/base/function_ref.h"
#include "runtime/base/topology.h"
#include "runtime/config/tunable_values.h"
#include "runtime/kernel/address_space.h"
#include "runtime/policy/move.h"
#include "runtime/policy/object_heat.h"

namespace pghot {

// Nodes (bit each) that the page at `address` may go to by a move of this kind; 0: it stays. Asks the allocator (pinned
// placement, and whether the policy there is ours) and the kernel (the policy the program set). Any thread; one system
// call.
uint64_t targets_at(uintptr_t address, MoveKind kind, Scope scope, const sys::MemoryPolicy& thread_policy,
                    const Topology& topology);

// What of the process may be moved, as the sampler knows it: the snapshot of its mappings and the allocator's
// generations. Owned by the sampler.
class MovableMemory final : public ObjectSource {
public:
    MovableMemory(FileSystem& files, const Topology& topology, Scope scope, const sys::MemoryPolicy& thread_policy,
                  std::span<AddressRange> storage);

    // Whether pages at `address` may be moved. An answer of no makes the next refresh worthwhile.
    bool may_move(uintptr_t address);
    // Reads the mappings again when a sample fell outside what is known. Never more often than costs 1 % of the time,
    // and at least once a second when wanted. True when they were read.
    bool refresh(TimeNs now);
    void want_refresh() { wanted_ = true; }    // a plan met memory that was not as the snapshot says
    uint64_t refreshes() const { return refreshes_; }
    std::span<const AddressRange> ranges() const { return space_.ranges(); }

    // Whether the allocator reused the chunk since it was asked last: heat of it is stale. Remembers a bounded number
    // of chunks; one that it forgot answers false.
    bool was_reused(uintptr_t address);

    // The large block of the heap, or the mapping, that holds `address`.
    ObjectRange object_at(uintptr_t address) const override;

    // Cuts a planned move to what may move: `keep` gets the parts, `rest` the outcome of the others.
    void clip(const Move& move, FunctionRef<void(const Move&)> keep, FunctionRef<void(const MoveOutcome&)> rest) const;

private:
    struct Generation {
        uintptr_t chunk;
        uint32_t generation;
    };
    static constexpr size_t kGenerations = 4096;

    FileSystem& files_;
    const Topology& topology_;
    Scope scope_;
    const sys::MemoryPolicy& thread_policy_;
    AddressSpace space_;
    bool wanted_ = true;
    uint64_t refreshes_ = 0;
    TimeNs next_refresh_{};
    std::array<Generation, kGenerations> generations_{};
};

}    // namespace pghot
