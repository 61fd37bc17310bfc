// SPDX-License-Identifier: Apache-2.0
#include "allocator/page_moves.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "allocator/errno_guard.h"
#include "allocator/extent_registry.h"
#include "allocator/overcommit.h"
#include "allocator/placement.h"
#include "runtime/base/units.h"
#include "runtime/kernel/answer.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4    // linux/mman.h, Linux 5.7
#endif

namespace pghot {
namespace {

// A block has one mapping for each time it has grown, and cuts a hole into the one it lands in. All in all a quarter of
// vm.max_map_count's default of 65530.
constexpr size_t kMostPieces = 16;
constexpr uint32_t kMostMovedBlocks = 1024;

constinit std::atomic<uint32_t> marked_blocks{0};
constinit std::atomic<bool> refused{false};

// A part of a block that is one mapping: the most that one call moves.
struct Piece {
    char* at;
    size_t bytes;
};

// More than any address has room for, less than what Linux 6.17 refuses before it looks at the mapping.
constexpr size_t kImpossibleBytes = (size_t{1} << 47) - kPageBytes;

// Asked by a growth that cannot be: EFAULT when `bytes` are no single mapping, ENOMEM or EAGAIN otherwise. (Growth by
// nothing is a success without a look, and before Linux 6.17 several mappings do not move at once.)
// libc's function by name: MPI's registration caches watch it, and must hear that the addresses have other pages now.
bool is_one_mapping(char* at, size_t bytes) {
    if (mremap(at, bytes, kImpossibleBytes, 0) != MAP_FAILED) return false;
    if (errno == ENOMEM || errno == EAGAIN) return true;
    if (errno != EFAULT) answer(KernelCall::mremap, -1);
    return false;
}

// The longest run of pages from `at` that is one mapping; 0 when not even one page can be asked about.
size_t mapping_bytes_at(char* at, size_t most) {
    if (is_one_mapping(at, most)) return most;
    size_t low = 0, high = most / kPageBytes;    // pages that are, that are not
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        (is_one_mapping(at, middle * kPageBytes) ? low : high) = middle;
    }
    return low * kPageBytes;
}

class Pieces {
public:
    // False when there are too many, or the kernel does not say.
    bool find(char* at, size_t bytes) {
        while (bytes > 0) {
            const size_t length = count_ < kMostPieces ? mapping_bytes_at(at, bytes) : 0;
            if (length == 0) return false;
            pieces_[count_++] = {at, length};
            at += length;
            bytes -= length;
        }
        return true;
    }
    size_t count() const { return count_; }
    const Piece& operator[](size_t i) const { return pieces_[i]; }

private:
    std::array<Piece, kMostPieces> pieces_;
    size_t count_ = 0;
};

bool move_piece(const Piece& piece, char* to) {
    constexpr int kFlags = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
    if (mremap(piece.at, piece.bytes, piece.bytes, kFlags, to) == to) return true;
    answer(KernelCall::mremap, -1);
    return false;
}

uintptr_t address_of(const void* block) { return reinterpret_cast<uintptr_t>(block); }

void mark(const void* block) {
    if (has_moved_pages(block)) return;
    extent_registry.set_moved_mark(address_of(block), true);
    marked_blocks.fetch_add(1, std::memory_order_relaxed);
}

}    // namespace

bool pages_can_move(const void* block) {
    if (refused.load(std::memory_order_relaxed) || !kernel_overcommits()) return false;
    return marked_blocks.load(std::memory_order_relaxed) < kMostMovedBlocks || has_moved_pages(block);
}

PageMove move_contents(void* from, void* to, size_t bytes) {
    const ErrnoGuard errno_guard;
    const size_t offset = address_of(from) % kPageBytes;
    char* const first_page = static_cast<char*>(from) - offset;
    const ptrdiff_t distance = static_cast<char*>(to) - static_cast<char*>(from);
    Pieces pieces;
    if (!pieces.find(first_page, page_of(offset + bytes + kPageBytes - 1))) {
        memcpy(to, from, bytes);
        return PageMove::kCopied;
    }
    size_t moved = 0;
    while (moved < pieces.count() && move_piece(pieces[moved], pieces[moved].at + distance)) ++moved;
    if (moved == pieces.count()) {
        mark(from);
        mark(to);
        return PageMove::kMoved;
    }

    // A refused call may have unmapped its target already (mremap_to in the kernel's mm/mremap.c), and another thread's
    // new mapping may lie there by now. So nothing more is done with the target but taking back what it got.
    refused.store(true, std::memory_order_relaxed);
    for (size_t i = 0; i < moved; ++i) memcpy(pieces[i].at, pieces[i].at + distance, pieces[i].bytes);
    return PageMove::kLost;
}

bool has_moved_pages(const void* block) { return extent_registry.has_moved_mark(address_of(block)); }

bool renew_mapping(void* begin, size_t bytes) {
    const ErrnoGuard errno_guard;
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;    // as jemalloc's own
    if (mmap(begin, bytes, PROT_READ | PROT_WRITE, kFlags, -1, 0) == begin) {
        bind_to_placement(address_of(begin), bytes, extent_registry.find(address_of(begin)).placement);
        return true;
    }
    answer(KernelCall::mmap, -1);
    // Refused by a limit, the mappings are as they were, and their pages can go all the same (but locked ones: EINVAL).
    return madvise(begin, bytes, MADV_DONTNEED) == 0 || errno != ENOMEM;
}

bool renew_extent(const void* block, void* begin, size_t bytes) {
    extent_registry.set_moved_mark(address_of(block), false);
    marked_blocks.fetch_sub(1, std::memory_order_relaxed);
    return renew_mapping(begin, bytes);
}

}    // namespace pghot
