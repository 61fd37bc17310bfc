// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "block.h"
#include "handover.h"
#include "mapping.h"
#include "random.h"

namespace soak {

// The blocks and mappings of one thread, and what it does to them. It outlives its thread: another one goes on with it.
class Worker {
public:
    // `bytes`: most that its blocks hold, the chain of the moment apart.
    Worker(uint64_t seed, size_t bytes, Handover& handover) : random_(seed), most_bytes_(bytes), handover_(handover) {}
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    // Random operations until it is done, or until the thread's own life is over.
    void live_until(std::chrono::steady_clock::time_point end);
    // Every operation has come at least once, however slow the machine is.
    bool is_done(std::chrono::steady_clock::time_point end) const {
        return std::chrono::steady_clock::now() >= end && decks_played_ > 0;
    }

private:
    using Operation = void (Worker::*)();

    void step();
    void deal_deck();
    void allocate();
    void keep(std::unique_ptr<Block> block);
    void release_one();
    void resize_one();
    void small_blocks();
    void hand_over();
    void read_hot(const Block& block);
    void read_one();
    void rewrite_one();
    void pin_one();
    void protect_one();
    void lock_one();
    void advise_one();
    void step_mapping();
    void chain();
    void visit();
    void fork_child();
    void wait_for_child();
    [[noreturn]] void be_child();
    Block* any();
    Block* any_large();
    std::unique_ptr<Block> take(size_t index);
    void grow_and_shrink(Block& block, size_t top);

    Random random_;
    const size_t most_bytes_;
    Handover& handover_;
    size_t bytes_ = 0;
    std::vector<std::unique_ptr<Block>> blocks_;
    std::vector<std::unique_ptr<Mapping>> mappings_;
    std::vector<Operation> deck_;    // what comes next, the last first
    unsigned decks_played_ = 0;
    pid_t child_ = 0;
};

}    // namespace soak
