// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace tier_bench {

inline uint64_t next_random(uint64_t x) {    // xorshift64: three shifts, so the loop is mostly the access
    x ^= x << 13;
    x ^= x >> 7;
    return x ^ (x << 17);
}

// Scales the upper half of the random number to [0, count): no division. count below 2^32.
inline size_t scaled(uint64_t random, size_t count) { return ((random >> 32) * count) >> 32; }

inline uint64_t mixed(uint64_t seed) {    // splitmix64, so that neighbouring seeds give unrelated sequences; never 0
    seed += 0x9e3779b97f4a7c15ull;
    seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9ull;
    seed = (seed ^ (seed >> 27)) * 0x94d049bb133111ebull;
    return (seed ^ (seed >> 31)) | 1;
}

}    // namespace tier_bench
