// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

// A growing array changes its address without being copied: the kernel hangs its pages over (mremap). A page table
// entry takes some 15 ns to move where a page takes 100 ns or more to copy, and memory is never needed twice.
//
// Moved memory stays a mapping of its own, which the kernel does not join with its neighbours again. So moved blocks
// are marked, there are only so many, and when one is freed its extent becomes an ordinary mapping again.
namespace pghot {

// Smaller blocks are copied: pages that were moved from are gone, and small temporaries that grow again and again would
// fault them in at every turn. At least two chunks: see ExtentRegistry::set_moved_mark.
inline constexpr size_t kMinMovedBytes = size_t{16} << 20;

// Whether moving the pages of `block` is worth trying: false for good after the kernel has refused it once (no
// MREMAP_DONTUNMAP before Linux 5.7, a seccomp filter), without overcommit, and for a block that would be one moved
// block more than there may be. Any thread.
bool pages_can_move(const void* block);

enum class PageMove {
    kMoved,     // `to` has the contents; `from` is mapped and reads as zeros
    kCopied,    // `to` has the contents, in the ordinary way
    kLost,      // `from` has the contents; what lies at `to` may not be touched any more, nor given back
};

// Brings the contents of a block of the heap to another one, at the same offset in its page; each has its first and
// last page for itself. Marks both. Any thread, under no lock; keeps errno. No thread uses either block meanwhile.
PageMove move_contents(void* from, void* to, size_t bytes);

// Whether the block is marked. Its owner asks.
bool has_moved_pages(const void* block);

// Makes an ordinary, untouched mapping of pages that are about to be given back: those of a marked block's whole
// extent, which loses the mark, or the end of it. False: there may be no mapping any more, and these addresses must
// never be used again.
bool renew_extent(const void* block, void* begin, size_t bytes);
bool renew_mapping(void* begin, size_t bytes);

}    // namespace pghot
