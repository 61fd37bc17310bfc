// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace pghot {

// Zeroed private memory straight from the kernel, never from malloc, for the tables of our threads. Not copied into
// forked children. Touched pages count as the process's; untouched ones cost nothing. Owner unmaps.
class AnonymousMemory {
public:
    AnonymousMemory() = default;
    explicit AnonymousMemory(size_t bytes);
    ~AnonymousMemory();
    AnonymousMemory(AnonymousMemory&& other) noexcept;
    AnonymousMemory& operator=(AnonymousMemory&& other) noexcept;
    AnonymousMemory(const AnonymousMemory&) = delete;
    AnonymousMemory& operator=(const AnonymousMemory&) = delete;

    // Empty when the kernel gave none (RLIMIT_AS, overcommit).
    std::span<std::byte> bytes() const { return {static_cast<std::byte*>(at_), size_}; }
    // Hands the memory over: it is never given back.
    void* release();
    explicit operator bool() const { return at_ != nullptr; }

    // Room for `count` objects that need no construction, zeroed.
    template <typename T>
    std::span<T> as(size_t count) const {
        return {reinterpret_cast<T*>(at_), at_ == nullptr ? 0 : count};
    }

private:
    void* at_ = nullptr;
    size_t size_ = 0;
};

// Whether a byte of [begin, end) is memory of this kind: it is not the program's. Any thread; costs a look at 32
// ranges. Of more than so many at a time the later ones are not known.
bool overlaps_own_memory(uintptr_t begin, uintptr_t end);

}    // namespace pghot
