// SPDX-License-Identifier: Apache-2.0
// What jemalloc calls instead of mmap, munmap and madvise. Runs under jemalloc's locks, on any thread, before
// constructors and in forked children: no allocation, no lock, no waiting, errno kept (a call that fails on the way to
// a success must not show). The functions behind are libc's own by name, so that MPI's registration caches, which
// watch munmap and madvise there, keep seeing them.

#include <sys/mman.h>

#include <cerrno>

#include "allocator/errno_guard.h"
#include "allocator/extent_registry.h"
#include "allocator/jemalloc_api.h"
#include "allocator/page_calls.h"
#include "allocator/placement.h"
#include "runtime/base/heap.h"
#include "runtime/kernel/answer.h"

namespace pghot {

void enter_mapping(void* at, size_t bytes, uint8_t placement) {
    const auto begin = reinterpret_cast<uintptr_t>(at);
    extent_registry.add(begin, bytes, placement, placement_rules().placements[placement].pinned);
    bind_to_placement(begin, bytes, placement);
    start_signal.mapped_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void unmap_pages(void* at, size_t bytes) {
    const ErrnoGuard errno_guard;
    // Out of the registry first: once unmapped, the addresses may be another thread's new mapping.
    extent_registry.remove(reinterpret_cast<uintptr_t>(at), bytes);
    start_signal.mapped_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    answer(KernelCall::munmap, munmap(at, bytes));    // failure (too many mappings) leaks address space
}

int advise_pages(void* at, size_t bytes, int advice) {
    const ErrnoGuard errno_guard;
    const int result = madvise(at, bytes, advice);
    answer(KernelCall::madvise, result);
    if (result == 0 && (advice == MADV_DONTNEED || advice == MADV_FREE))
        extent_registry.forget_contents(reinterpret_cast<uintptr_t>(at), bytes);
    return result;
}

}    // namespace pghot

namespace {

// The GNU C library aligns every block to 16 bytes, and programs keep marks in the low four bits of an address;
// jemalloc's smallest class is of 8 bytes. Leaving it out costs a block of 1 to 8 bytes 8 more, still half of
// libc's 32.
void align_the_smallest_blocks() {
    pghot::jemalloc::je_sz_size2index_tab[0] = pghot::jemalloc::kClassOf16Bytes;
    pghot::jemalloc::je_sz_size2index_tab[1] = pghot::jemalloc::kClassOf16Bytes;
}

// jemalloc's start tries MADV_FREE out on a page. That way of purging is off (muzzy_decay_ms:0), so it gets this page,
// which nobody touches, and the answer no: three system calls less a process.
alignas(pghot::kPageBytes) char trial_page[pghot::kPageBytes];
constinit bool nothing_is_mapped = true;

// The first mapping: on one thread, the size tables are filled and no block is given out yet.
bool is_trial(size_t bytes) {
    if (!nothing_is_mapped) return false;
    nothing_is_mapped = false;
    align_the_smallest_blocks();
    return bytes == pghot::kPageBytes;
}

}    // namespace

extern "C" {

void* jemalloc_page_map(void* at, size_t bytes, int protection, int flags, int descriptor, off_t offset) {
    if (is_trial(bytes)) return trial_page;
    const pghot::ErrnoGuard errno_guard;
    void* mapping = mmap(at, bytes, protection, flags, descriptor, offset);
    if (mapping == MAP_FAILED) {
        pghot::answer(pghot::KernelCall::mmap, -1);
        return mapping;
    }
    if ((flags & MAP_FIXED) != 0) {
        // jemalloc replaces pages of its own (commit and decommit, without overcommit): not new bytes, other contents.
        pghot::start_signal.mapped_bytes.fetch_sub(bytes, std::memory_order_relaxed);
        pghot::extent_registry.forget_contents(reinterpret_cast<uintptr_t>(mapping), bytes);
    }
    pghot::enter_mapping(mapping, bytes, 0);
    return mapping;
}

// Always a success: on a failure jemalloc would print over the program, and the range is lost to it either way.
int jemalloc_page_unmap(void* at, size_t bytes) {
    if (at != trial_page) pghot::unmap_pages(at, bytes);
    return 0;
}

int jemalloc_page_advise(void* at, size_t bytes, int advice) {
    return at == trial_page ? -1 : pghot::advise_pages(at, bytes, advice);
}

}    // extern "C"
