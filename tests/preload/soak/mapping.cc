// SPDX-License-Identifier: Apache-2.0
#include "mapping.h"

#include <sys/mman.h>

#include <algorithm>

#include "tally.h"

namespace soak {
namespace {

constexpr size_t kMostPages = 2048;    // 8 MiB

}    // namespace

Mapping::Mapping(Random& random, size_t pages) : written_(pages) {
    void* mapped = mmap(nullptr, pages * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) give_up("mmap");
    at_ = static_cast<char*>(mapped);
    count(tally.mappings);
    write(some(random));
}

Mapping::~Mapping() {
    check_all();
    munmap(at_, written_.size() * kPageBytes);
}

Mapping::Pages Mapping::some(Random& random) const {
    const size_t first = random.below(written_.size());
    return {first, random.between(first + 1, std::min(written_.size(), first + 256))};
}

void Mapping::step(Random& random) {
    show();
    const Pages pages = some(random);
    switch (random.below(6)) {
        case 0:
            return drop(pages);
        case 1:
            return write(pages);
        case 2:
            return hide(random, pages);
        case 3:
            return lock(pages);
        case 4:
            return resize(random.between(1, kMostPages));
        default:
            return check(pages);
    }
}

void Mapping::check(Pages pages) const {
    for (size_t page = pages.first; page < pages.end; ++page) {
        const Range range{page * kPageBytes, (page + 1) * kPageBytes};
        if (written_[page])
            pattern_.check("mapping", at_, range);
        else
            check_zeros("pages of a mapping never written or dropped", at_, range);
    }
}

void Mapping::check_all() const {
    if (hidden_.end > hidden_.first &&
        mprotect(at(hidden_.first), (hidden_.end - hidden_.first) * kPageBytes, PROT_READ))
        give_up("mprotect");
    check({0, written_.size()});
}

void Mapping::drop(Pages pages) {
    check(pages);
    const size_t bytes = (pages.end - pages.first) * kPageBytes;
    munlock(at(pages.first), bytes);    // locked pages cannot be dropped
    if (madvise(at(pages.first), bytes, MADV_DONTNEED) != 0) give_up("MADV_DONTNEED");
    std::fill(written_.begin() + static_cast<long>(pages.first), written_.begin() + static_cast<long>(pages.end),
              false);
    count(tally.bytes_dropped, bytes);
    check(pages);
}

void Mapping::write(Pages pages) {
    check(pages);
    pattern_.fill(at_, {pages.first * kPageBytes, pages.end * kPageBytes});
    std::fill(written_.begin() + static_cast<long>(pages.first), written_.begin() + static_cast<long>(pages.end), true);
}

void Mapping::hide(Random& random, Pages pages) {
    const int protection = random.one_in(2) ? PROT_NONE : PROT_READ;
    if (mprotect(at(pages.first), (pages.end - pages.first) * kPageBytes, protection) != 0) return;
    hidden_ = pages;
    count(tally.protections);
}

void Mapping::show() {
    if (hidden_.end <= hidden_.first) return;
    if (mprotect(at(hidden_.first), (hidden_.end - hidden_.first) * kPageBytes, PROT_READ | PROT_WRITE) != 0)
        give_up("mprotect");
    check(hidden_);
    hidden_ = {0, 0};
}

void Mapping::lock(Pages pages) {
    if (mlock(at(pages.first), (pages.end - pages.first) * kPageBytes) != 0) return;    // RLIMIT_MEMLOCK
    count(tally.locks);
}

void Mapping::resize(size_t pages) {
    const size_t before = written_.size();
    if (pages < before) check({pages, before});
    munlock(at_, before * kPageBytes);    // may make one mapping of its pieces again
    void* moved = mremap(at_, before * kPageBytes, pages * kPageBytes, MREMAP_MAYMOVE);
    if (moved == MAP_FAILED) return;    // still in pieces, as after a fork: the kernel takes no two mappings
    at_ = static_cast<char*>(moved);
    written_.resize(pages, false);
    check({0, std::min(before, pages)});
}

}    // namespace soak
