// SPDX-License-Identifier: Apache-2.0
// jemalloc's large path (16 KiB and more), where size rules act and a refused allocation gets a second try. The linker
// sends jemalloc's calls here (--wrap); no lock is held. Small blocks never come by.

#include "allocator/extent_registry.h"
#include "allocator/freed_memory.h"
#include "allocator/jemalloc_api.h"
#include "allocator/placed_arenas.h"
#include "allocator/placement.h"

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
    return allocate_somewhere(thread, chosen, birth, [=](jemalloc::Arena* arena) {
        return jemalloc::__real_je_large_ralloc(thread, arena, block, usable_bytes, alignment, zero, cache, hooks);
    });
}

void __wrap_je_large_dalloc(jemalloc::Thread* thread, jemalloc::Extent* extent) {
    extent_registry.forget_contents(reinterpret_cast<uintptr_t>(extent->address), extent->bytes());
    jemalloc::__real_je_large_dalloc(thread, extent);
}

}    // extern "C"
