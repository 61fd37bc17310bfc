// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "runtime/kernel/answer.h"

namespace pghot {
namespace {

// Written by whoever makes or unmaps one, read by any thread. `begin` is set last and cleared first: a reader sees a
// range or none.
struct OwnRange {
    std::atomic<uintptr_t> begin{0};
    std::atomic<uintptr_t> end{0};
};
std::array<OwnRange, 32> own_ranges;

void remember(uintptr_t begin, uintptr_t end) {
    for (OwnRange& range : own_ranges) {
        uintptr_t free = 0;
        if (!range.end.compare_exchange_strong(free, end, std::memory_order_relaxed)) continue;
        range.begin.store(begin, std::memory_order_release);    // pairs with overlaps_own_memory
        return;
    }
}

void forget(uintptr_t begin) {
    for (OwnRange& range : own_ranges) {
        if (range.begin.load(std::memory_order_relaxed) != begin) continue;
        range.begin.store(0, std::memory_order_relaxed);
        range.end.store(0, std::memory_order_relaxed);
        return;
    }
}

uintptr_t number(const void* at) { return reinterpret_cast<uintptr_t>(at); }

}    // namespace

bool overlaps_own_memory(uintptr_t begin, uintptr_t end) {
    return std::any_of(own_ranges.begin(), own_ranges.end(), [&](const OwnRange& range) {
        const uintptr_t first = range.begin.load(std::memory_order_acquire);    // pairs with remember
        return first != 0 && first < end && begin < range.end.load(std::memory_order_relaxed);
    });
}

AnonymousMemory::AnonymousMemory(size_t bytes) {
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        answer(KernelCall::mmap, -1);
        return;
    }
    answer(KernelCall::madvise, madvise(at, bytes, MADV_DONTFORK));
    at_ = at;
    size_ = bytes;
    remember(number(at), number(at) + bytes);
}

AnonymousMemory::~AnonymousMemory() {
    if (at_ == nullptr) return;
    forget(number(at_));
    answer(KernelCall::munmap, munmap(at_, size_));
}

AnonymousMemory::AnonymousMemory(AnonymousMemory&& other) noexcept
    : at_(std::exchange(other.at_, nullptr)), size_(std::exchange(other.size_, 0)) {}

void* AnonymousMemory::release() {
    size_ = 0;
    return std::exchange(at_, nullptr);
}

AnonymousMemory& AnonymousMemory::operator=(AnonymousMemory&& other) noexcept {
    std::swap(at_, other.at_);
    std::swap(size_, other.size_);
    return *this;
}

}    // namespace pghot
