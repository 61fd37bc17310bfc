// SPDX-License-Identifier: Apache-2.0
#include "worker.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "tally.h"

namespace soak {
namespace {

constexpr size_t kLeastBytes = 16;
constexpr size_t kMostBytes = 32 << 20;
constexpr size_t kMiddleBytes = 1 << 20;
constexpr size_t kSmallBytes = 16 << 10;
constexpr size_t kTallChainBytes = 64 << 20;
constexpr size_t kLowChainBytes = 12 << 20;
constexpr size_t kBytesCheckedInChild = 2 << 20;    // whole blocks; of the others a word of each page
constexpr size_t kMostMappings = 4;

constinit std::atomic_flag tall_chain_under_way = ATOMIC_FLAG_INIT;    // one at a time: two hold twice its top

// Most blocks are small, most bytes in large ones; a few of the largest would leave no time for the rest.
size_t some_bytes(Random& random) {
    return random.log_uniform(kLeastBytes, random.one_in(4) ? kMostBytes : kMiddleBytes);
}

// Verified and freed when its thread's storage is torn down, after the thread's function has returned.
struct Keepsake {
    std::unique_ptr<Block> block;
};
thread_local Keepsake keepsake;

using Clock = std::chrono::steady_clock;

}    // namespace

Worker::~Worker() { wait_for_child(); }

void Worker::live_until(Clock::time_point end) {
    count(tally.threads_started);
    keepsake.block = std::make_unique<Block>(random_, random_.log_uniform(kLeastBytes, kMiddleBytes));
    const auto own_end = Clock::now() + std::chrono::milliseconds(random_.between(200, 3000));
    while (Clock::now() < own_end && !is_done(end)) step();
}

// How often each operation comes in a deck. The next deck is shuffled anew.
void Worker::deal_deck() {
    struct Kind {
        int count;
        Operation operation;
    };
    static constexpr Kind kDeck[] = {
        {10, &Worker::allocate},   {4, &Worker::release_one}, {7, &Worker::resize_one},  {3, &Worker::small_blocks},
        {8, &Worker::hand_over},   {6, &Worker::read_one},    {2, &Worker::rewrite_one}, {5, &Worker::pin_one},
        {3, &Worker::protect_one}, {2, &Worker::lock_one},    {2, &Worker::advise_one},  {5, &Worker::step_mapping},
        {1, &Worker::chain},       {1, &Worker::visit},       {1, &Worker::fork_child},
    };
    for (const Kind& kind : kDeck) deck_.insert(deck_.end(), static_cast<size_t>(kind.count), kind.operation);
    for (size_t left = deck_.size(); left > 1; --left) std::swap(deck_[random_.below(left)], deck_[left - 1]);
}

void Worker::step() {
    if (deck_.empty()) deal_deck();
    const Operation operation = deck_.back();
    deck_.pop_back();
    (this->*operation)();
    count(tally.operations);
    if (deck_.empty()) ++decks_played_;
}

Block* Worker::any() { return blocks_.empty() ? nullptr : blocks_[random_.below(blocks_.size())].get(); }

// The largest of a few: most blocks are smaller than a page.
Block* Worker::any_large() {
    Block* largest = any();
    for (int i = 0; i < 7; ++i)
        if (Block* block = any(); block != nullptr && block->bytes() > largest->bytes()) largest = block;
    return largest;
}

std::unique_ptr<Block> Worker::take(size_t index) {
    std::swap(blocks_[index], blocks_.back());
    std::unique_ptr<Block> block = std::move(blocks_.back());
    blocks_.pop_back();
    bytes_ -= block->bytes();
    return block;
}

void Worker::keep(std::unique_ptr<Block> block) {
    if (block == nullptr) return;
    bytes_ += block->bytes();
    blocks_.push_back(std::move(block));
    while (bytes_ > most_bytes_ && blocks_.size() > 1) release_one();
}

void Worker::allocate() { keep(std::make_unique<Block>(random_, some_bytes(random_))); }

void Worker::release_one() {
    if (!blocks_.empty()) take(random_.below(blocks_.size()));
}

void Worker::resize_one() {
    if (blocks_.empty()) return;
    std::unique_ptr<Block> block = take(random_.below(blocks_.size()));
    const size_t before = block->bytes();
    const size_t least = std::max(kLeastBytes, before / 4);
    const size_t bytes =
        random_.one_in(4) ? some_bytes(random_) : random_.log_uniform(least, std::min(kMostBytes, before * 4));
    block->resize(random_, bytes, Block::Check::kAll);
    keep(std::move(block));
}

// Many at a time and freed in another order, so that slabs fill and empty.
void Worker::small_blocks() {
    std::vector<std::unique_ptr<Block>> small;
    for (size_t i = 0; i < 100; ++i)
        small.push_back(std::make_unique<Block>(random_, random_.log_uniform(kLeastBytes, kSmallBytes)));
    for (size_t i = 0; i < 50; ++i) {
        Block& block = *small[random_.below(small.size())];
        block.resize(random_, random_.log_uniform(kLeastBytes, kSmallBytes), Block::Check::kAll);
    }
    while (!small.empty()) {
        std::swap(small[random_.below(small.size())], small.back());
        if (random_.one_in(10)) keep(std::move(small.back()));
        small.pop_back();
    }
}

void Worker::hand_over() {
    std::unique_ptr<Block> mine = blocks_.empty() ? nullptr : take(random_.below(blocks_.size()));
    const Block* const was_mine = mine.get();
    std::unique_ptr<Block> got = handover_.exchange(random_, std::move(mine));
    if (got == nullptr) return;
    if (got.get() != was_mine) count(tally.cross_thread_blocks);
    if (random_.one_in(2)) keep(std::move(got));    // else verified and freed here
}

// Often enough that its pages are sampled, again and again while others move them.
void Worker::read_hot(const Block& block) {
    for (int round = 0; round < 20; ++round) block.check_pages(random_);
    for (int part = 0; part < 4; ++part) block.check_part(random_);
}

void Worker::read_one() {
    if (const Block* block = any_large()) read_hot(*block);
}

void Worker::rewrite_one() {
    if (Block* block = any()) block->rewrite();
}

void Worker::pin_one() {
    Block* block = any_large();
    if (block == nullptr) return;
    block->pin(random_);
    read_hot(*block);    // so that the mover meets the pin
}

void Worker::protect_one() {
    if (Block* block = any_large()) block->protect(random_);
}

void Worker::lock_one() {
    if (Block* block = any_large()) block->lock(random_);
}

void Worker::advise_one() {
    if (Block* block = any_large()) block->advise(random_);
}

void Worker::step_mapping() {
    if (mappings_.size() < kMostMappings)
        mappings_.push_back(std::make_unique<Mapping>(random_, random_.between(1, 1024)));
    if (random_.one_in(8))
        mappings_.erase(mappings_.begin() + static_cast<long>(random_.below(mappings_.size())));
    else
        mappings_[random_.below(mappings_.size())]->step(random_);
}

// An array that grows step by step to `top` and shrinks again, with pages pinned, locked, advised and its neighbours
// protected in between.
void Worker::grow_and_shrink(Block& block, size_t top) {
    const auto disturb = [&] {
        switch (random_.below(6)) {
            case 0:
                return block.pin(random_);
            case 1:
                return block.lock(random_);
            case 2:
                return block.advise(random_);
            case 3:
                return protect_one();
            default:
                return;
        }
    };
    while (block.bytes() < top) {
        const size_t more = random_.one_in(3) ? random_.between(1, 64 << 10) : block.bytes() / random_.between(1, 6);
        block.resize(random_, std::min(top, block.bytes() + std::max<size_t>(more, top / 64)), Block::Check::kPages);
        disturb();
    }
    block.check_all();
    while (block.bytes() > top / 64) {
        block.resize(random_, block.bytes() - block.bytes() / random_.between(2, 6), Block::Check::kPages);
        disturb();
    }
}

void Worker::chain() {
    const bool tall = !tall_chain_under_way.test_and_set();
    Block block(random_, random_.log_uniform(kLeastBytes, kMiddleBytes));
    grow_and_shrink(block, tall ? random_.between(kTallChainBytes / 2, kTallChainBytes) : kLowChainBytes);
    if (tall) tall_chain_under_way.clear();
    count(tally.chains);
}

// A thread that lives for a moment: what it allocates is freed by others, and by the end of its own storage.
void Worker::visit() {
    std::thread visitor([this, seed = random_.next()] {
        count(tally.threads_started);
        Random random(seed);
        keepsake.block = std::make_unique<Block>(random, random.log_uniform(kLeastBytes, kMiddleBytes));
        Block(random, random.log_uniform(kLeastBytes, kMiddleBytes)).check_all();
        auto left = std::make_unique<Block>(random, random.log_uniform(kLeastBytes, kMiddleBytes));
        handover_.exchange(random, std::move(left));
    });
    visitor.join();
}

void Worker::wait_for_child() {
    if (child_ == 0) return;
    int status = 0;
    if (waitpid(child_, &status, 0) != child_) give_up("waitpid");
    child_ = 0;
    if (status == 0) return;
    std::fprintf(stderr, "soak: seed %lu: a child ended with status %#x\n", seed_of_run, static_cast<unsigned>(status));
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 4);
}

// While the child lives, the pages are shared with it, and every write of ours is to a copy.
void Worker::fork_child() {
    wait_for_child();
    child_ = fork();
    if (child_ < 0) give_up("fork");
    if (child_ == 0) be_child();
    count(tally.forks);
}

// Only what this thread owns: others were in the middle of something.
void Worker::be_child() {
    child_ = 0;
    random_ = Random(random_.next() ^ static_cast<uint64_t>(getpid()));
    tall_chain_under_way.clear();
    size_t left = kBytesCheckedInChild;
    for (const std::unique_ptr<Block>& block : blocks_) {
        block->leave_pin_to_parent();
        block->check_pages(random_);
        if (block->bytes() > left) continue;
        left -= block->bytes();
        block->check_all();
    }
    for (const std::unique_ptr<Mapping>& mapping : mappings_) mapping->step(random_);
    for (int i = 0; i < 4; ++i) keep(std::make_unique<Block>(random_, random_.log_uniform(kLeastBytes, kMiddleBytes)));
    for (int i = 0; i < 4 && !blocks_.empty(); ++i) {
        if (blocks_[random_.below(blocks_.size())]->bytes() <= kLowChainBytes) release_one();
        if (Block* block = any(); block != nullptr && block->bytes() <= kLowChainBytes)
            block->resize(random_, block->bytes() * 2, Block::Check::kAll);
    }
    if (Block* inherited = any(); inherited != nullptr && inherited->bytes() <= kLowChainBytes)
        grow_and_shrink(*inherited, kLowChainBytes);
    small_blocks();
    if (random_.one_in(2)) std::exit(0);
    _exit(0);
}

}    // namespace soak
