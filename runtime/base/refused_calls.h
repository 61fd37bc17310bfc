// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pghot {

enum class KernelCall : uint8_t {
#define PGHOT_KERNEL_CALL(name) name,
#include "runtime/base/kernel_calls.def"
#undef PGHOT_KERNEL_CALL
    kCount
};

inline constexpr std::array<const char*, static_cast<size_t>(KernelCall::kCount)> kKernelCallNames{
#define PGHOT_KERNEL_CALL(name) #name,
#include "runtime/base/kernel_calls.def"
#undef PGHOT_KERNEL_CALL
};

// How often which call failed with which error. Noted by any thread, the program's too, without lock or memory; answers
// that are no refusal (a file that is optional, a wait that is over) are not noted.
class RefusedCalls {
public:
    void note(KernelCall call, int error) {
        const uint32_t wanted = (static_cast<uint32_t>(call) << 16) | (static_cast<uint32_t>(error) & 0xffff);
        for (Cell& cell : cells_) {
            uint32_t known = cell.key.load(std::memory_order_relaxed);
            // A free cell: whoever fills it first decides what it counts.
            if (known == 0 && cell.key.compare_exchange_strong(known, wanted, std::memory_order_relaxed))
                known = wanted;
            if (known != wanted) continue;
            cell.count.fetch_add(1, std::memory_order_relaxed);
            return;
        }
        // Full: what else fails is not listed.
    }

    // Calls `use(KernelCall, int error, uint64_t count)` for each pair that was noted.
    template <typename Use>
    void for_each(Use use) const {
        for (const Cell& cell : cells_) {
            const uint32_t key = cell.key.load(std::memory_order_relaxed);
            if (key == 0) return;
            use(static_cast<KernelCall>(key >> 16), static_cast<int>(key & 0xffff),
                cell.count.load(std::memory_order_relaxed));
        }
    }

    // In a forked child, whose only thread we are.
    void clear() {
        for (Cell& cell : cells_) {
            cell.key.store(0, std::memory_order_relaxed);
            cell.count.store(0, std::memory_order_relaxed);
        }
    }

private:
    struct Cell {
        std::atomic<uint32_t> key{0};    // call << 16 | error, never 0 since no error is 0
        std::atomic<uint64_t> count{0};
    };
    std::array<Cell, 64> cells_{};
};

// Of this process.
inline constinit RefusedCalls refused_calls;

}    // namespace pghot
