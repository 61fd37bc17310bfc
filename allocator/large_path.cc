// SPDX-License-Identifier: Apache-2.0
// jemalloc's large path (16 KiB and more), where size rules act and a refused allocation gets a second try. The linker
// sends jemalloc's calls here (--wrap); no lock is held. Small blocks never come by.

#include <algorithm>
#include <cstdint>
#include <cstring>

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

uintptr_t address_of(const void* block) { return reinterpret_cast<uintptr_t>(block); }

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
    wished_offset = static_cast<uint16_t>(address_of(block) % kPageBytes);
    void* fresh = __real_je_large_palloc(thread, arena, usable_bytes, alignment, false);
    extent_wish = ExtentWish::kAny;
    return fresh;
}

// realloc without a copy. Null: not done, and `block` is as it was.
void* reallocate_by_moving_pages(Thread* thread, Arena* arena, void* block, size_t usable_bytes) {
    void* fresh = allocate_like(block, thread, arena, usable_bytes);
    if (fresh == nullptr) return nullptr;
    const size_t bytes = std::min(jemalloc_malloc_usable_size(block), usable_bytes);
    extent_registry.forget_contents(address_of(fresh), bytes);
    if (move_contents(block, fresh, bytes) == PageMove::kLost) return nullptr;    // `fresh` is given up
    // Counts the freed bytes a second time in the thread's statistics, which nobody sees.
    jemalloc_free(block);
    return fresh;
}

constexpr size_t kCacheLineBytes = 64;    // large blocks are aligned to it

bool may_be_moved(const Thread* thread, void* block, size_t alignment, bool zero) {
    return thread != nullptr && !zero && alignment <= kCacheLineBytes && pages_can_move(block) &&
           jemalloc_malloc_usable_size(block) >= kMinMovedBytes && extent_registry.find(address_of(block)).ours;
}

// Where it is, else by moving its pages. Null: not done, and the block is as it was.
template <typename Allocate>
void* resize_without_copy(Thread* thread, Arena* arena, void* block, size_t usable_bytes, Allocate allocate) {
    extent_wish = ExtentWish::kNone;
    void* same = allocate(arena);
    extent_wish = ExtentWish::kAny;
    return same != nullptr ? same : reallocate_by_moving_pages(thread, arena, block, usable_bytes);
}

// Marks are by chunk, where smaller blocks may begin too.
bool is_moved_block(void* block) {
    return has_moved_pages(block) && jemalloc_malloc_usable_size(block) >= kMinMovedBytes;
}

// A marked block that becomes too small for a mark goes elsewhere, so that all of its extent is renewed. Null: it
// cannot.
void* copy_out(Thread* thread, Arena* arena, void* block, size_t usable_bytes) {
    void* fresh = __real_je_large_malloc(thread, arena, usable_bytes, false);
    if (fresh == nullptr) return nullptr;
    memcpy(fresh, block, usable_bytes);
    jemalloc_free(block);
    return fresh;
}

// What a block with moved pages will leave behind it when it shrinks where it is. False: it cannot.
bool renew_what_shrinks(void* block, size_t usable_bytes) {
    const size_t old_bytes = jemalloc_malloc_usable_size(block);
    if (usable_bytes >= old_bytes) return true;
    const uintptr_t end = page_of(address_of(block)) + usable_bytes + kPageBytes;    // extents have a page more
    return renew_mapping(reinterpret_cast<void*>(end), old_bytes - usable_bytes);
}

// A block keeps the placement it was born in. Null: the one that everything has.
Arena* arena_of_birth(const Thread* thread, const void* block) {
    if (placement_rules().size_rule_count == 0 || thread == nullptr) return nullptr;
    const uint8_t placement = extent_registry.find(address_of(block)).placement;
    return placement == 0 ? nullptr : placed_arena(placement);
}

// Large blocks are objects to the policy.
void* as_object(void* block, size_t usable_bytes) {
    if (block != nullptr && usable_bytes >= ExtentRegistry::kMinObjectBytes)
        extent_registry.add_object(address_of(block), usable_bytes);
    return block;
}

// What resize_anyhow did to an object of `old_bytes` that stayed where it was. One that went elsewhere was freed.
void* as_resized_object(void* block, void* result, size_t old_bytes, size_t usable_bytes) {
    if (result == block && usable_bytes < old_bytes) extent_registry.remove_object(address_of(block), old_bytes);
    return as_object(result, usable_bytes);
}

void* resize_anyhow(Thread* thread, Arena* chosen, void* block, size_t usable_bytes, size_t alignment, bool zero,
                    ThreadCache* cache, ReallocHooks* hooks) {
    Arena* birth = arena_of_birth(thread, block);
    const auto allocate = [=](Arena* arena) {
        return __real_je_large_ralloc(thread, arena, block, usable_bytes, alignment, zero, cache, hooks);
    };
    if (is_moved_block(block) && usable_bytes < kMinMovedBytes)
        if (void* copy = copy_out(thread, birth != nullptr ? birth : chosen, block, usable_bytes)) return copy;
    if (is_moved_block(block) && !renew_what_shrinks(block, usable_bytes)) return block;
    if (usable_bytes >= kMinMovedBytes && may_be_moved(thread, block, alignment, zero)) {
        Arena* arena = birth != nullptr ? birth : chosen;
        if (void* result = resize_without_copy(thread, arena, block, usable_bytes, allocate)) return result;
    }
    return allocate_somewhere(thread, chosen, birth, allocate);
}

}    // namespace
}    // namespace pghot

extern "C" {

using namespace pghot;

void* __wrap_je_large_malloc(jemalloc::Thread* thread, jemalloc::Arena* chosen, size_t usable_bytes, bool zero) {
    void* block = allocate_somewhere(thread, chosen, arena_by_rule(thread, usable_bytes), [=](jemalloc::Arena* arena) {
        return jemalloc::__real_je_large_malloc(thread, arena, usable_bytes, zero);
    });
    return as_object(block, usable_bytes);
}

void* __wrap_je_large_palloc(jemalloc::Thread* thread, jemalloc::Arena* chosen, size_t usable_bytes, size_t alignment,
                             bool zero) {
    void* block = allocate_somewhere(thread, chosen, arena_by_rule(thread, usable_bytes), [=](jemalloc::Arena* arena) {
        return jemalloc::__real_je_large_palloc(thread, arena, usable_bytes, alignment, zero);
    });
    return as_object(block, usable_bytes);
}

void* __wrap_je_large_ralloc(jemalloc::Thread* thread, jemalloc::Arena* chosen, void* block, size_t usable_bytes,
                             size_t alignment, bool zero, jemalloc::ThreadCache* cache, jemalloc::ReallocHooks* hooks) {
    const size_t old_bytes = jemalloc::jemalloc_malloc_usable_size(block);
    void* result = resize_anyhow(thread, chosen, block, usable_bytes, alignment, zero, cache, hooks);
    return as_resized_object(block, result, old_bytes, usable_bytes);
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
    const void* block = extent->address;
    const size_t bytes = extent->bytes();
    const bool was_moved = bytes >= kMinMovedBytes && has_moved_pages(block);
    if (was_moved && !renew_extent(block, reinterpret_cast<void*>(page_of(address_of(block))), bytes)) return;
    extent_registry.forget_contents(address_of(block), bytes);
    extent_registry.remove_object(address_of(block), bytes);
    jemalloc::__real_je_large_dalloc(thread, extent);
}

}    // extern "C"
