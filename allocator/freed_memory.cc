// SPDX-License-Identifier: Apache-2.0
#include "allocator/freed_memory.h"

#include "allocator/errno_guard.h"
#include "allocator/jemalloc_api.h"

namespace pghot {

// One after the other: for all of them at once jemalloc lists them on the stack, 8 KiB on a machine of 256 processors,
// and a coroutine may have no more.
void release_freed_memory() {
    const ErrnoGuard errno_guard;
    unsigned arenas = 0;
    size_t arenas_bytes = sizeof arenas;
    size_t purge[3], purge_length = 3;
    if (jemalloc::mallctl("arenas.narenas", &arenas, &arenas_bytes, nullptr, 0) != 0) return;
    if (jemalloc::mallctlnametomib("arena.0.purge", purge, &purge_length) != 0) return;
    for (purge[1] = 0; purge[1] < arenas; ++purge[1])
        jemalloc::mallctlbymib(purge, purge_length, nullptr, nullptr, nullptr, 0);
}

}    // namespace pghot

extern "C" {

using namespace pghot::jemalloc;

// A thread cache that runs empty: the second try for small blocks. The one for large ones: large_path.cc.
void* __wrap_je_tcache_alloc_small_hard(Thread* thread, Arena* arena, ThreadCache* cache, CacheBin* bin,
                                        unsigned size_class, bool* refilled) {
    void* block = __real_je_tcache_alloc_small_hard(thread, arena, cache, bin, size_class, refilled);
    if (block != nullptr) return block;
    pghot::release_freed_memory();
    return __real_je_tcache_alloc_small_hard(thread, arena, cache, bin, size_class, refilled);
}

}    // extern "C"
