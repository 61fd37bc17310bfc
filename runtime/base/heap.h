// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace pghot {

// What the allocator tells the runtime about an address. A plain value: it may be stale the moment it is returned.
struct HeapExtent {
    bool ours = false;          // mapped by our jemalloc
    bool movable = true;        // false: a placement that said "pinned"
    bool bound = false;         // a placement of ours set a memory policy here
    uint8_t placement = 0;      // index of the placement; 0 is the default placement
    uint32_t generation = 0;    // changes when the chunk is unmapped, purged or reused
};

// Where allocator and runtime meet: the allocator sets the function when it is linked in, the runtime calls it from any
// thread. Lock-free, does not allocate. Unset (null): nothing is ours.
using HeapLookup = HeapExtent (*)(uintptr_t address);
extern HeapLookup heap_lookup;

// A live block of the heap that is large enough to be looked at as a whole: the 2 MiB chunks that lie in it whole, as
// addresses. Empty: none is known.
struct HeapObject {
    uintptr_t begin = 0;
    uintptr_t end = 0;
};

// As HeapLookup. May be stale, too.
using HeapObjectLookup = HeapObject (*)(uintptr_t address);
extern HeapObjectLookup heap_object_lookup;

// The start signal. Page calls only add to mapped_bytes (they run under jemalloc's locks); jemalloc's per-thread event
// (no lock held) compares and calls start() once. All fields but the atomics are written before `armed` is set.
struct StartSignal {
    std::atomic<uint64_t> mapped_bytes{0};    // net bytes mapped by our jemalloc
    std::atomic<bool> armed{false};           // set at load when there may be a lower tier; cleared by whoever starts
    uint64_t start_min_bytes = 0;             // PGHOT_START_MIN
    void (*poll)() = nullptr;    // called while armed, from a program thread that holds no lock of jemalloc
};
extern StartSignal start_signal;

}    // namespace pghot
