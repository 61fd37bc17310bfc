// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "block.h"

namespace soak {

// Where threads leave blocks for each other: who takes a block owns it, and frees it one day.
class Handover {
public:
    explicit Handover(size_t most_bytes) : most_bytes_(most_bytes) {}
    ~Handover() {
        for (std::atomic<Block*>& place : places_) delete place.load();
    }
    Handover(const Handover&) = delete;
    Handover& operator=(const Handover&) = delete;

    // Leaves `mine` (may be null) and takes what lay there. `mine` comes back when too much lies here already.
    std::unique_ptr<Block> exchange(Random& random, std::unique_ptr<Block> mine) {
        const size_t bytes = mine == nullptr ? 0 : mine->bytes();
        if (bytes_.fetch_add(bytes) + bytes > most_bytes_) {
            bytes_.fetch_sub(bytes);
            return mine;
        }
        std::unique_ptr<Block> theirs(places_[random.below(places_.size())].exchange(mine.release()));
        if (theirs != nullptr) bytes_.fetch_sub(theirs->bytes());
        return theirs;
    }

private:
    const size_t most_bytes_;
    std::atomic<size_t> bytes_{0};
    std::array<std::atomic<Block*>, 64> places_{};
};

}    // namespace soak
