// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "runtime/engine/shared.h"
#include "runtime/migrate/call_size.h"
#include "runtime/migrate/page_mover.h"
#include "runtime/policy/job_shares.h"

namespace pghot {

// The world as the mover thread sees it: the kernel, the allocator's registry, the nodes' free memory.
class KernelMoveWorld final : public MoveWorld {
public:
    explicit KernelMoveWorld(const EngineShared& shared) : shared_(shared) {}
    long move_pages(std::span<void* const> pages, const int* targets, int* statuses) override;
    uint64_t targets_of(uintptr_t address, MoveKind kind) override;
    uint32_t generation_of(uintptr_t address) override;
    uint64_t room_on(NodeId node) override;
    void moved(NodeId from, NodeId to, uint64_t bytes) override;
    TimeNs now() override { return sys::now(); }

private:
    const EngineShared& shared_;
    uint32_t round_ = 0;
    std::array<int64_t, kMaxNodes>
        taken_{};    // bytes put on each node, less those taken away, since free_bytes was read
};

// The loop of pghot-mover: plans in, batches through the budget to the kernel, outcomes out. Opens no file: it shares
// the program's descriptor table (see runtime/decisions/2026-11-30-threads.md).
class MoverLoop {
public:
    explicit MoverLoop(EngineShared& shared);
    // Returns when the engine stops. What is still planned then is reported as expired.
    void run();

private:
    void take(Move move);
    uint32_t room_in_batch() const;
    void run_batch();
    bool wait_for_budget(uint64_t bytes);
    void report(const MoveOutcome& outcome);
    void drop_queue();

    EngineShared& shared_;
    Counters& counters_;
    KernelMoveWorld world_;
    PageMover batch_;
    CallSize call_size_;
    FairBudget budget_;
};

}    // namespace pghot
