// SPDX-License-Identifier: Apache-2.0
// jemalloc's large path (16 KiB and more), where size rules act and a refused allocation gets a second try. The linker
// sends jemalloc's calls here (--wrap); no lock is held. Small blocks never come by.

#include "allocator/extent_registry.h"
#include "allocator/freed_memory.h"
#include "allocator/jemalloc_api.h"
#include "allocator/page_moves.h"
#include "allocator/placed_arenas.h"
#include "allocator/placement.h"
#include "runtime/base/units.h"

namespace pghot {
namespace {

using namespace jemalloc;

// The arena that the rules want for a new block; null: the one jemalloc chose. A thread is null while jemalloc starts.
Arena* arena_by_rule(const Thread* thread, size_t usable_bytes) {
    const PlacementRules& rules = placement_rules();
    if (rules.size_rule_count == 0 || thread == nullptr) return nullptr;
    const uint8_t placement = rules.placement_for(usable_bytes);
    return placement == 0 ? nullptr : placed_arena(placement);
}

// Tries where the rules say, then where jemalloc would, then again after freed memory went back.
template <typename Allocate>
void* allocate_somewhere(const Thread* thread, Arena* chosen, Arena* by_rule, Allocate allocate) {
    if (by_rule != nullptr)
        if (void* block = allocate(by_rule)) return block;
    if (void* block = allocate(chosen)) return block;
    if (thread == nullptr) return nullptr;
    release_freed_memory();
    return allocate(chosen);
}

// What the calling thread wants of the next extent that jemalloc takes for a large block.
enum class ExtentWish : uint8_t {
    kAny,
    kNone,        // to be refused: shows whether a realloc can do without one
    kAtOffset,    // the block to start at wished_offset in its first page
};
constinit thread_local ExtentWish extent_wish = ExtentWish::kAny;
constinit thread_local uint16_t wished_offset = 0;

// Above this, moved blocks start at a huge page's border, so that the next move takes page tables as a whole.
constexpr size_t kMinHugeAlignedBytes = size_t{32} << 20;

// A new block whose address lies as far into its page as that of `block`.
void* allocate_like(const void* block, Thread* thread, Arena* arena, size_t usable_bytes) {
    const size_t alignment = usable_bytes >= kMinHugeAlignedBytes ? kChunkBytes : kPageBytes;
    extent_wish = ExtentWish::kAtOffset;
    wished_offset = static_cast<uint16_t>(reinterpret_cast<uintptr_t>(block) % kPageBytes);
    void* fresh = __real_je_large_palloc(thread, arena, usable_bytes, alignment, false);
    extent_wish = ExtentWish::kAny;
    return fresh;
}

void* grow_in_place(Thread* thread, Arena* arena, void* block, size_t usable_bytes, size_t alignment,
                    ThreadCache* cache, ReallocHooks* hooks) {
    extent_wish = ExtentWish::kNone;
    void* grown = __real_je_large_ralloc(thread, arena, block, usable_bytes, alignment, false, cache, hooks);
    extent_wish = ExtentWish::kAny;
    return grown;
}

// realloc without a copy. Null: not done, and `block` is as it was.
void* reallocate_by_moving_pages(Thread* thread, Arena* arena, void* block, size_t usable_bytes) {
    void* fresh = allocate_like(block, thread, arena, usable_bytes);
    if (fresh == nullptr) return nullptr;
    const size_t bytes = std::min(jemalloc_malloc_usable_size(block), usable_bytes);
    extent_registry.forget_contents(reinterpret_cast<uintptr_t>(fresh), bytes);
    if (move_contents(block, fresh, bytes) == PageMove::kLost) return nullptr;    // `fresh` is given up
    // Counts the freed bytes a second time in the thread's statistics, which nobody sees.
    jemalloc_free(block);
    return fresh;
}

constexpr size_t kCacheLineBytes = 64;    // large blocks are aligned to it

bool may_be_moved(const Thread* thread, size_t usable_bytes, size_t alignment, bool zero) {
    return usable_bytes >= kMinMovedBytes && thread != nullptr && !zero && alignment <= kCacheLineBytes &&
           pages_can_move();
}

// Null: by the ordinary way, please.
void* grow_without_copy(Thread* thread, Arena* arena, void* block, size_t usable_bytes, size_t alignment,
                        ThreadCache* cache, ReallocHooks* hooks) {
    if (!extent_registry.find(reinterpret_cast<uintptr_t>(block)).ours) return nullptr;
    if (void* same = grow_in_place(thread, arena, block, usable_bytes, alignment, cache, hooks)) return same;
    return reallocate_by_moving_pages(thread, arena, block, usable_bytes);
}

// What a block that shrinks where it is will leave behind it.
bool renew_what_shrinks(void* block, size_t old_bytes, size_t usable_bytes) {
    const uintptr_t first_page = page_of(reinterpret_cast<uintptr_t>(block));
    void* tail = reinterpret_cast<void*>(first_page + usable_bytes + kPageBytes);    // a page more than the block
    return renew_tail(block, tail, old_bytes - usable_bytes);
}

}    // namespace
}    // namespace pghot

extern "C" {

using namespace pghot;

void* __wrap_je_large_malloc(jemalloc::Thread* thread, jemalloc::Arena* chosen, size_t usable_bytes, bool zero) {
    return allocate_somewhere(thread, chosen, arena_by_rule(thread, usable_bytes), [=](jemalloc::Arena* arena) {
        return jemalloc::__real_je_large_malloc(thread, arena, usable_bytes, zero);
    });
}

void* __wrap_je_large_palloc(jemalloc::Thread* thread, jemalloc::Arena* chosen, size_t usable_bytes, size_t alignment,
                             bool zero) {
    return allocate_somewhere(thread, chosen, arena_by_rule(thread, usable_bytes), [=](jemalloc::Arena* arena) {
        return jemalloc::__real_je_large_palloc(thread, arena, usable_bytes, alignment, zero);
    });
}

// A block keeps the placement it was born in.
void* __wrap_je_large_ralloc(jemalloc::Thread* thread, jemalloc::Arena* chosen, void* block, size_t usable_bytes,
                             size_t alignment, bool zero, jemalloc::ThreadCache* cache, jemalloc::ReallocHooks* hooks) {
    jemalloc::Arena* birth = nullptr;
    if (placement_rules().size_rule_count != 0 && thread != nullptr) {
        const uint8_t placement = extent_registry.find(reinterpret_cast<uintptr_t>(block)).placement;
        if (placement != 0) birth = placed_arena(placement);
    }
    const size_t old_bytes = jemalloc::jemalloc_malloc_usable_size(block);
    if (old_bytes >= kMinMovedBytes && usable_bytes < old_bytes && !renew_what_shrinks(block, old_bytes, usable_bytes))
        return block;
    if (old_bytes >= kMinMovedBytes && may_be_moved(thread, usable_bytes, alignment, zero)) {
        jemalloc::Arena* arena = birth != nullptr ? birth : chosen;
        void* grown = grow_without_copy(thread, arena, block, usable_bytes, alignment, cache, hooks);
        if (grown != nullptr) return grown;
    }
    return allocate_somewhere(thread, chosen, birth, [=](jemalloc::Arena* arena) {
        return jemalloc::__real_je_large_ralloc(thread, arena, block, usable_bytes, alignment, zero, cache, hooks);
    });
}

jemalloc::Extent* __wrap_je_arena_extent_alloc_large(jemalloc::Thread* thread, jemalloc::Arena* arena,
                                                     size_t usable_bytes, size_t alignment, bool zero) {
    if (extent_wish == ExtentWish::kNone) return nullptr;
    jemalloc::Extent* extent =
        jemalloc::__real_je_arena_extent_alloc_large(thread, arena, usable_bytes, alignment, zero);
    if (extent != nullptr && extent_wish == ExtentWish::kAtOffset)
        extent->address = static_cast<char*>(extent->address) + wished_offset;
    return extent;
}

void __wrap_je_large_dalloc(jemalloc::Thread* thread, jemalloc::Extent* extent) {
    const auto block = reinterpret_cast<uintptr_t>(extent->address);
    const size_t bytes = extent->bytes();
    void* first_page = reinterpret_cast<void*>(page_of(block));
    if (bytes >= kMinMovedBytes && !renew_extent(extent->address, first_page, bytes)) return;
    extent_registry.forget_contents(block, bytes);
    jemalloc::__real_je_large_dalloc(thread, extent);
}

}    // extern "C"
