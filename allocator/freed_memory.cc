// SPDX-License-Identifier: Apache-2.0
#include "allocator/freed_memory.h"

#include "allocator/errno_guard.h"
#include "allocator/jemalloc_api.h"

namespace pghot {

void release_freed_memory() {
    const ErrnoGuard errno_guard;
    jemalloc::mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0);    // 4096: MALLCTL_ARENAS_ALL
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
