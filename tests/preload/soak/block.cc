// SPDX-License-Identifier: Apache-2.0
#include "block.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "tally.h"

namespace soak {
namespace {

constexpr size_t kMostPinnedPages = 64;

char* allocate(Random& random, size_t bytes) {
    count(tally.allocations);
    void* at = nullptr;
    switch (random.below(6)) {
        case 0:
            at = std::calloc(1, bytes);
            if (at == nullptr) give_up("calloc");
            check_zeros("calloc", static_cast<char*>(at), {0, bytes});
            break;
        case 1: {
            const size_t alignment = size_t{16} << random.below(18);    // to 2 MiB
            if (posix_memalign(&at, alignment, bytes) != 0) give_up("posix_memalign");
            if (reinterpret_cast<uintptr_t>(at) % alignment != 0) give_up("posix_memalign: not aligned");
            break;
        }
        case 2:
            at = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
            break;
        default:
            at = std::malloc(bytes);
            break;
    }
    if (at == nullptr) give_up("allocation");
    return static_cast<char*>(at);
}

}    // namespace

Block::Block(Random& random, size_t bytes) : at_(allocate(random, bytes)), bytes_(bytes) {
    pattern_.fill(at_, {0, bytes_});
}

Block::~Block() {
    pin_.reset();
    unprotect();
    check_all();
    if (!locked_.empty() && !keeps_lock_) munlock(at_ + locked_.from, locked_.bytes());
    std::free(at_);
}

void Block::check_part(Random& random) const {
    const size_t from = random.below(bytes_);
    pattern_.check("block", at_, {from, std::min(bytes_, from + random.log_uniform(1, 64 << 10))});
}

void Block::rewrite() {
    pin_.reset();
    unprotect();
    check_all();
    pattern_.next_version();
    pattern_.fill(at_, {0, bytes_});
}

void Block::check(Random& random, Range range, Check how) const {
    if (how == Check::kAll)
        pattern_.check("block", at_, range);
    else
        pattern_.check_pages("block", at_, range, random.next());
}

void Block::resize(Random& random, size_t bytes, Check how) {
    if (pin_ != nullptr && random.one_in(2)) pin_.reset();
    unprotect();
    check(random, {0, bytes_}, how);
    // Locks of memory that is about to go are the program's to undo; half of them stay, as with careless programs.
    if (!locked_.empty() && random.one_in(2)) munlock(at_ + locked_.from, locked_.bytes());
    const auto before = reinterpret_cast<uintptr_t>(at_);
    char* const at = static_cast<char*>(std::realloc(at_, bytes));
    if (at == nullptr) give_up("realloc");
    count(tally.reallocs);
    if (reinterpret_cast<uintptr_t>(at) != before) count(tally.reallocs_that_moved);
    if (pin_ != nullptr) {
        pin_->expect_anything();
        count(tally.pins_over_realloc);
    }
    at_ = at;
    locked_ = {};
    check(random, {0, std::min(bytes_, bytes)}, how);
    pattern_.fill(at_, {bytes_, bytes});
    bytes_ = bytes;
}

Range Block::some_pages(Random& random) const {
    const auto begin = reinterpret_cast<uintptr_t>(at_);
    const size_t first = (kPageBytes - begin % kPageBytes) % kPageBytes;
    if (bytes_ < first + 2 * kPageBytes) return {};
    const size_t pages = (bytes_ - first) / kPageBytes;
    const size_t from = random.below(pages);
    const size_t most = std::min<size_t>(pages - from, kMostPinnedPages);
    return {first + from * kPageBytes, first + (from + random.between(1, most)) * kPageBytes};
}

void Block::pin(Random& random) {
    const Range range = some_pages(random);
    if (range.empty() || pin_ != nullptr || !Pin::possible()) return;
    pin_ = std::make_unique<Pin>(pattern_, at_, range, random.one_in(2) ? Pin::Kind::kGift : Pin::Kind::kLent);
}

void Block::protect(Random& random) {
    const Range range = some_pages(random);
    if (range.empty() || !read_only_.empty()) return;
    if (mprotect(at_ + range.from, range.bytes(), PROT_READ) != 0) return;    // too many mappings
    read_only_ = range;
    count(tally.protections);
}

void Block::unprotect() {
    if (read_only_.empty()) return;
    if (mprotect(at_ + read_only_.from, read_only_.bytes(), PROT_READ | PROT_WRITE) != 0) give_up("mprotect");
    read_only_ = {};
}

void Block::lock(Random& random) {
    const Range range = some_pages(random);
    if (range.empty() || !locked_.empty()) return;
    if (mlock(at_ + range.from, range.bytes()) != 0) return;    // RLIMIT_MEMLOCK
    locked_ = range;
    keeps_lock_ = random.one_in(8);
    count(tally.locks);
}

void Block::advise(Random& random) {
    const Range range = some_pages(random);
    if (range.empty()) return;
    const int advice[] = {MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_DONTDUMP, MADV_DODUMP, MADV_COLD, MADV_PAGEOUT};
    if (madvise(at_ + range.from, range.bytes(), advice[random.below(std::size(advice))]) == 0) count(tally.advices);
}

void Block::leave_pin_to_parent() {
    if (pin_ == nullptr) return;
    pin_->leave_to_parent();
    pin_.reset();
}

}    // namespace soak
