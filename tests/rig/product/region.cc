// SPDX-License-Identifier: Apache-2.0
#include "region.h"

#include <numaif.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kLineBytes = 64;
constexpr size_t kHugeBytes = 2 << 20;

[[noreturn]] void fail(const char* what) {
    std::perror(what);
    std::exit(3);
}

}    // namespace

Region::Region(size_t bytes, int node, Policy policy, Pages pages) : bytes_(bytes) {
    mapping_ = mmap(nullptr, bytes + kHugeBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping_ == MAP_FAILED) fail("mmap");
    char* begin = static_cast<char*>(mapping_);
    at_ = begin + (kHugeBytes - reinterpret_cast<uintptr_t>(begin) % kHugeBytes) % kHugeBytes;
    madvise(at_, bytes_, pages == Pages::kHuge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    const unsigned long mask = 1ul << node;
    if (mbind(at_, bytes_, MPOL_BIND, &mask, 64, 0) != 0) fail("mbind");
    for (size_t i = 0; i < bytes_; i += kPageBytes) at_[i] = 1;
    if (policy == Policy::kReset && mbind(at_, bytes_, MPOL_DEFAULT, nullptr, 0, 0) != 0) fail("mbind");
}

Region::~Region() { munmap(mapping_, bytes_ + kHugeBytes); }

void Region::read_once() {
    const size_t line = (round_++ * 7) % (kPageBytes / kLineBytes);
    for (size_t i = 0; i < bytes_; i += kPageBytes) (void)*static_cast<volatile char*>(at_ + i + line * kLineBytes);
}

std::map<int, size_t> Region::pages_per_node() const {
    std::vector<void*> pages;
    for (size_t i = 0; i < bytes_; i += kPageBytes) pages.push_back(at_ + i);
    std::vector<int> status(pages.size());
    if (move_pages(0, pages.size(), pages.data(), nullptr, status.data(), 0) != 0) fail("move_pages");
    std::map<int, size_t> count;
    for (const int node : status) ++count[node];
    return count;
}
