// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/accesses.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "tests/bench/random.h"

namespace tier_bench {
namespace {

constexpr uint64_t kLinesPerPage = kPageBytes / kLineBytes;

std::vector<uint32_t> pages_by_rank(size_t pages, ZipfOrder order, uint64_t seed) {
    std::vector<uint32_t> page_of_rank(pages);
    std::iota(page_of_rank.begin(), page_of_rank.end(), 0u);
    if (order == ZipfOrder::kScattered)
        std::shuffle(page_of_rank.begin(), page_of_rank.end(), std::mt19937_64(mixed(seed)));
    return page_of_rank;
}

// Probability of each rank times the number of ranks, so that 1 is the mean.
std::vector<double> weights_of_ranks(size_t ranks, double exponent) {
    std::vector<double> weights(ranks);
    for (size_t rank = 0; rank < ranks; ++rank) weights[rank] = std::pow(static_cast<double>(rank + 1), -exponent);
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (double& weight : weights) weight *= static_cast<double>(ranks) / sum;
    return weights;
}

}    // namespace

ZipfTable::ZipfTable(size_t pages, double exponent, ZipfOrder order, uint64_t seed)
    : exponent_(exponent), page_of_rank_(pages_by_rank(pages, order, seed)), entries_(pages) {
    const std::vector<double> of_rank = weights_of_ranks(pages, exponent);
    std::vector<double> weights(pages);
    for (size_t rank = 0; rank < pages; ++rank) weights[page_of_rank_[rank]] = of_rank[rank];
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

std::vector<size_t> ZipfTable::hottest(double share) const {
    const std::vector<double> weights = weights_of_ranks(page_of_rank_.size(), exponent_);
    const double wanted = share * static_cast<double>(weights.size());
    std::vector<size_t> pages;
    double sum = 0;
    for (size_t rank = 0; rank < weights.size() && sum < wanted; ++rank) {
        pages.push_back(page_of_rank_[rank]);
        sum += weights[rank];
    }
    return pages;
}

AccessLoop::AccessLoop(Field own, Field other, double other_share, uint64_t seed)
    : own_(own), other_(other), other_below_(static_cast<uint64_t>(other_share * 0x1p16)), random_(mixed(seed)) {}

// `draw(random)` answers the page to access.
template <typename Draw>
void AccessLoop::repeat(uint64_t accesses, Draw draw) {
    uint64_t random = random_, sum = 0;
    for (uint64_t i = 0; i < accesses; ++i) {
        random = next_random(random);
        std::byte* page = draw(random);
        const size_t line = random % kLinesPerPage;
        auto* word = reinterpret_cast<volatile uint64_t*>(page + line * kLineBytes);
        if (i % 2 == 0)
            sum += *word;
        else
            *word = i;
    }
    random_ = random;
    sum_ += sum;
}

void AccessLoop::run(uint64_t accesses) {
    const auto page_of = [](const Field& field, uint64_t random) {
        const size_t pages = field.memory.size() / kPageBytes;
        const size_t page = field.zipf != nullptr ? field.zipf->draw(random) : scaled(random, pages);
        return field.memory.data() + page * kPageBytes;
    };
    const Field own = own_, other = other_;
    if (other_below_ == 0) {
        repeat(accesses, [&](uint64_t random) { return page_of(own, random); });
        return;
    }
    // Bits 8 to 23 choose the field: the line is of the lowest six, the page of the upper half.
    const uint64_t below = other_below_;
    repeat(accesses, [&](uint64_t random) { return page_of((random >> 8 & 0xffff) < below ? other : own, random); });
}

}    // namespace tier_bench
