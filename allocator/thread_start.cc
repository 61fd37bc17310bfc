// SPDX-License-Identifier: Apache-2.0
// A thread's first allocation where the kernel gives no memory. jemalloc then ends the process, or corrupts it: it uses
// a thread cache that was never set up, and takes the null that it got for an arena. Such a thread does without.

#include "allocator/errno_guard.h"
#include "allocator/jemalloc_api.h"

extern "C" {

using namespace pghot::jemalloc;

// As jemalloc's, except that a thread whose cache could not be had has none.
bool __wrap_je_tsd_tcache_enabled_data_init(Thread* thread) {
    thread->has_cache = je_opt_tcache;
    je_tsd_slow_update(thread);
    if (!je_opt_tcache || !je_tsd_tcache_data_init(thread)) return false;
    thread->has_cache = false;
    je_tsd_slow_update(thread);    // the fast path takes the cache for granted
    return false;
}

// The thread shares the first arena. The internal arena stays unbound, and is asked for again each time.
Arena* __wrap_je_arena_choose_hard(Thread* thread, bool internal) {
    Arena* arena = __real_je_arena_choose_hard(thread, internal);
    if (arena != nullptr) return arena;
    const pghot::ErrnoGuard errno_guard;
    Arena* first = je_arenas[0];
    if (internal || first == nullptr) return first;
    // A move to another arena counts the thread out of the one and into the other: here into it once.
    je_arena_nthreads_inc(first, false);
    je_arena_migrate(thread, first, first);
    return first;
}

}    // extern "C"
