// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/accesses.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "tests/bench/memory.h"

namespace tier_bench {
namespace {

constexpr size_t kLineBytes = 64;
constexpr uint64_t kLinesPerPage = kPageBytes / kLineBytes;

uint64_t next_random(uint64_t x) {    // xorshift64: three shifts, so the loop is mostly the access
    x ^= x << 13;
    x ^= x >> 7;
    return x ^ (x << 17);
}

// Scales the upper half of the random number to [0, count): no division.
size_t scaled(uint64_t random, size_t count) { return ((random >> 32) * count) >> 32; }

uint64_t mixed(uint64_t seed) {    // splitmix64, so that neighbouring seeds give unrelated sequences; never 0
    seed += 0x9e3779b97f4a7c15ull;
    seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9ull;
    seed = (seed ^ (seed >> 27)) * 0x94d049bb133111ebull;
    return (seed ^ (seed >> 31)) | 1;
}

// Probability of each page times the number of pages, so that 1 is the mean.
std::vector<double> zipf_weights(size_t pages, double exponent, ZipfOrder order, uint64_t seed) {
    std::vector<size_t> page_of_rank(pages);
    std::iota(page_of_rank.begin(), page_of_rank.end(), size_t{0});
    if (order == ZipfOrder::kScattered)
        std::shuffle(page_of_rank.begin(), page_of_rank.end(), std::mt19937_64(mixed(seed)));
    std::vector<double> weights(pages);
    double sum = 0;
    for (size_t rank = 0; rank < pages; ++rank) {
        weights[page_of_rank[rank]] = std::pow(static_cast<double>(rank + 1), -exponent);
        sum += weights[page_of_rank[rank]];
    }
    for (double& weight : weights) weight *= static_cast<double>(pages) / sum;
    return weights;
}

}    // namespace

ZipfTable::ZipfTable(size_t pages, double exponent, ZipfOrder order, uint64_t seed) : entries_(pages) {
    std::vector<double> weights = zipf_weights(pages, exponent, order, seed);
    std::vector<uint32_t> poor, rich;
    for (uint32_t page = 0; page < pages; ++page) (weights[page] < 1 ? poor : rich).push_back(page);
    while (!poor.empty() && !rich.empty()) {
        const uint32_t low = poor.back(), high = rich.back();
        poor.pop_back();
        entries_[low] = {static_cast<uint32_t>(weights[low] * 0x1p32), high};
        weights[high] -= 1 - weights[low];
        if (weights[high] >= 1) continue;
        rich.pop_back();
        poor.push_back(high);
    }
    for (const auto& rest : {poor, rich})    // weight 1, up to rounding: always itself
        for (const uint32_t page : rest) entries_[page] = {UINT32_MAX, page};
}

size_t ZipfTable::draw(uint64_t random) const {
    const size_t slot = scaled(random, entries_.size());
    const Entry entry = entries_[slot];
    return static_cast<uint32_t>(random * 0x9e3779b97f4a7c15ull >> 32) < entry.keep_below ? slot : entry.alias;
}

AccessLoop::AccessLoop(std::span<std::byte> memory, const ZipfTable* zipf, uint64_t seed)
    : memory_(memory), zipf_(zipf), random_(mixed(seed)) {}

void AccessLoop::run(uint64_t accesses) {
    const size_t pages = memory_.size() / kPageBytes;
    uint64_t random = random_, sum = 0;
    for (uint64_t i = 0; i < accesses; ++i) {
        random = next_random(random);
        const size_t page = zipf_ != nullptr ? zipf_->draw(random) : scaled(random, pages);
        const size_t line = random % kLinesPerPage;
        auto* word = reinterpret_cast<volatile uint64_t*>(&memory_[page * kPageBytes + line * kLineBytes]);
        if (i % 2 == 0)
            sum += *word;
        else
            *word = i;
    }
    random_ = random;
    sum_ += sum;
}

}    // namespace tier_bench
