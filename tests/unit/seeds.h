// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <random>
#include <vector>

namespace pghot::test {

// Runs a test's story once for each seed: those `kept` (each found a fault once, or is just there), and one that nobody
// tried before. TEST_SEED=N runs N alone, to repeat a failure; every failure names its seed.
inline void for_each_seed(std::initializer_list<uint64_t> kept, const std::function<void(uint64_t seed)>& story) {
    std::vector<uint64_t> seeds(kept);
    seeds.push_back(std::random_device{}());
    if (const char* wanted = std::getenv("TEST_SEED")) seeds = {std::strtoull(wanted, nullptr, 0)};
    for (const uint64_t seed : seeds) {
        SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
        story(seed);
        if (testing::Test::HasFatalFailure()) return;
    }
}

}    // namespace pghot::test
