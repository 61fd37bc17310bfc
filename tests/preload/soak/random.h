// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace soak {

// SplitMix64 (public domain, Vigna). One owner.
constexpr uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

class Random {
public:
    explicit Random(uint64_t seed) : state_(mix(seed)) {}

    uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15); }
    uint64_t below(uint64_t end) { return next() % end; }
    uint64_t between(uint64_t first, uint64_t last) { return first + below(last - first + 1); }
    bool one_in(uint64_t n) { return below(n) == 0; }
    double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
    size_t log_uniform(size_t least, size_t most) {
        const double ratio = static_cast<double>(most) / static_cast<double>(least);
        return static_cast<size_t>(static_cast<double>(least) * std::pow(ratio, unit()));
    }

private:
    uint64_t state_;
};

}    // namespace soak
