// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/movable_memory.h"

#include <algorithm>

#include "runtime/base/heap.h"

namespace pghot {
namespace {

HeapExtent heap_extent(uintptr_t address) { return heap_lookup == nullptr ? HeapExtent{} : heap_lookup(address); }

constexpr uint64_t kRefreshShare = 100;    // a refresh may cost 1 part in 100 of the time until the next

}    // namespace

uint64_t targets_at(uintptr_t address, MoveKind kind, Scope scope, const sys::MemoryPolicy& thread_policy,
                    const Topology& topology) {
    const HeapExtent extent = heap_extent(address);
    if (!extent.ours && scope == Scope::kHeap) return 0;
    if (extent.ours && !extent.movable) return 0;
    sys::MemoryPolicy policy;
    if (sys::policy_of_address(address, policy) != 0) return 0;
    // A placement of ours says where memory is born, not that it stays. We never bind: BIND is the program's word.
    if (extent.bound && !policy.is_bind())
        policy = {};
    else if (policy.is_default())
        policy = thread_policy;
    return kind == MoveKind::kDemote ? demotion_targets(policy, topology) : promotion_targets(policy, topology);
}

MovableMemory::MovableMemory(FileSystem& files, const Topology& topology, Scope scope,
                             const sys::MemoryPolicy& thread_policy, std::span<AddressRange> storage)
    : files_(files), topology_(topology), scope_(scope), thread_policy_(thread_policy), space_(storage) {}

bool MovableMemory::may_move(uintptr_t address) {
    const AddressRange* range = space_.find(address);
    if (range != nullptr && range->targets != 0) {
        const HeapExtent extent = heap_extent(address);
        return extent.ours ? extent.movable : scope_ == Scope::kProcess;
    }
    wanted_ = true;
    return false;
}

bool MovableMemory::refresh(TimeNs now) {
    if (!wanted_ || now < next_refresh_) return false;
    const TimeNs before = sys::now();
    space_.refresh(files_, [this](uintptr_t begin) {
        return targets_at(begin, MoveKind::kPromote, Scope::kProcess, thread_policy_, topology_);
    });
    const uint64_t cost = static_cast<uint64_t>(sys::now() - before);
    next_refresh_ = now + std::clamp(cost * kRefreshShare, 100 * kNsPerMs, kNsPerSecond);
    wanted_ = false;
    ++refreshes_;
    return true;
}

bool MovableMemory::was_reused(uintptr_t address) {
    const HeapExtent extent = heap_extent(address);
    if (!extent.ours) return false;
    const uintptr_t chunk = chunk_of(address);
    Generation& known = generations_[chunk / kChunkBytes % kGenerations];
    const bool reused = known.chunk == chunk && known.generation != extent.generation;
    known = Generation{chunk, extent.generation};
    return reused;
}

ObjectRange MovableMemory::object_at(uintptr_t address) const {
    uintptr_t begin = 0, end = 0;
    if (heap_extent(address).ours) {
        if (heap_object_lookup == nullptr) return {};
        const HeapObject object = heap_object_lookup(address);
        begin = object.begin;
        end = object.end;
    } else if (const AddressRange* range = space_.find(address)) {
        begin = range->begin;
        end = range->end;
    }
    const uint64_t first = (begin + kChunkBytes - 1) / kChunkBytes;
    return {.first_chunk = first, .end_chunk = std::max(first, uint64_t{end / kChunkBytes})};
}

void MovableMemory::clip(const Move& move, FunctionRef<void(const Move&)> keep,
                         FunctionRef<void(const MoveOutcome&)> rest) const {
    const uintptr_t end = move.address + uint64_t{move.pages} * kPageBytes;
    uintptr_t at = move.address;
    while (at < end) {
        const AddressRange* range = space_.find(at);
        const uintptr_t part_end = range == nullptr ? at + kPageBytes : std::min(end, range->end);
        const uint32_t pages = static_cast<uint32_t>((part_end - at + kPageBytes - 1) / kPageBytes);
        if (range != nullptr && range->targets != 0) {
            Move part = move;
            part.address = at;
            part.pages = pages;
            part.heap_generation = heap_extent(at).generation;
            keep(part);
        } else {
            rest({at, pages, PageOutcome::kAbsent, kNoNode, move.planned, move.target, move.kind});
        }
        at = part_end;
    }
}

}    // namespace pghot
