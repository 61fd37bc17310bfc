// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

namespace pghot {

// Bounded queue between exactly one producer thread and one consumer thread; never blocks, never allocates.
// Full is an answer, not an error: the producer keeps or drops the element and counts it.
template <typename T, size_t kCapacity>
class SpscQueue {
    static_assert((kCapacity & (kCapacity - 1)) == 0, "capacity is a power of two");

public:
    // Producer only. False when full.
    bool push(const T& element) {
        const size_t tail = tail_.load(std::memory_order_relaxed);
        if (tail - head_.load(std::memory_order_acquire) == kCapacity) return false;    // pairs with pop's release
        slots_[tail & (kCapacity - 1)] = element;
        tail_.store(tail + 1, std::memory_order_release);    // pairs with pop's acquire
        return true;
    }
    // Consumer only. False when empty.
    bool pop(T& element) {
        const size_t head = head_.load(std::memory_order_relaxed);
        if (head == tail_.load(std::memory_order_acquire)) return false;
        element = slots_[head & (kCapacity - 1)];
        head_.store(head + 1, std::memory_order_release);
        return true;
    }
    // Either side; a snapshot.
    size_t size() const { return tail_.load(std::memory_order_acquire) - head_.load(std::memory_order_acquire); }
    size_t free_slots() const { return kCapacity - size(); }

private:
    alignas(64) std::atomic<size_t> head_{0};
    alignas(64) std::atomic<size_t> tail_{0};
    std::array<T, kCapacity> slots_{};
};

}    // namespace pghot
