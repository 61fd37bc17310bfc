// SPDX-License-Identifier: Apache-2.0
#pragma once

// The one header to the inside of jemalloc 5.3.0, as linked in by CMakeLists.txt of this folder. Everything of
// jemalloc that our code calls, wraps or stands in for is named here with the reason; the lists of renamed calls
// (jemalloc's to us) and wrapped functions live in jemalloc_link.cmake. Another jemalloc version means checking this
// header against its sources, then adding the version to kSupported in CMakeLists.txt.

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pghot::jemalloc {

// jemalloc's own types, opaque to us.
struct Arena;           // arena_t
struct ThreadCache;     // tcache_t
struct CacheBin;        // cache_bin_t: one size class of a thread cache
struct ReallocHooks;    // hook_ralloc_args_t
struct EventContext;    // te_ctx_t

// tsdn_t, the calling thread: a pointer that is null before it has one. We read and write its first field, which the
// slow paths test and of which je_tsd_slow_update tells the fast ones.
struct Thread {
    bool has_cache;    // tcache_enabled
};

// edata_t, of which we read where a large block lies and how long it is. Of the bits, the low 12 are the arena's index
// and bit 15 tells that all pages are fresh (EDATA_BITS_ARENA, EDATA_BITS_ZEROED). The low 12 bits of size_and_serial
// are a serial number (EDATA_SIZE_MASK).
struct Extent {
    uint64_t bits;
    void* address;
    size_t size_and_serial;
    size_t bytes() const { return size_and_serial & ~size_t{4095}; }
    unsigned arena() const { return bits & 0xfff; }
};

// extent_hooks_t: how an arena of ours gets its memory. Answers of true mean "not done".
struct ExtentHooks {
    void* (*alloc)(ExtentHooks*, void* at, size_t bytes, size_t alignment, bool* zero, bool* commit, unsigned arena);
    bool (*dalloc)(ExtentHooks*, void* at, size_t bytes, bool committed, unsigned arena);
    void (*destroy)(ExtentHooks*, void* at, size_t bytes, bool committed, unsigned arena);
    bool (*commit)(ExtentHooks*, void* at, size_t bytes, size_t offset, size_t length, unsigned arena);
    bool (*decommit)(ExtentHooks*, void* at, size_t bytes, size_t offset, size_t length, unsigned arena);
    bool (*purge_lazy)(ExtentHooks*, void* at, size_t bytes, size_t offset, size_t length, unsigned arena);
    bool (*purge_forced)(ExtentHooks*, void* at, size_t bytes, size_t offset, size_t length, unsigned arena);
    bool (*split)(ExtentHooks*, void* at, size_t bytes, size_t first, size_t second, bool committed, unsigned arena);
    bool (*merge)(ExtentHooks*, void* first, size_t first_bytes, void* second, size_t second_bytes, bool committed,
                  unsigned arena);
};

inline constexpr unsigned kArenaLimit = 1u << 12;    // MALLOCX_ARENA_LIMIT: indices are 12 bits

extern "C" {

// The public control interface: arenas with hooks, statistics, purging. Takes jemalloc's ctl lock; never called where
// jemalloc may hold one.
int mallctl(const char* name, void* old_value, size_t* old_bytes, void* new_value, size_t new_bytes);
int mallctlnametomib(const char* name, size_t* path, size_t* path_length);
int mallctlbymib(const size_t* path, size_t path_length, void* old_value, size_t* old_bytes, void* new_value,
                 size_t new_bytes);

// Index to arena. mallctl answers with an index; the large path wants the arena. Written once by arenas.create.
extern Arena* je_arenas[kArenaLimit];

// True while jemalloc keeps address space for ever (it is off where mappings are limited).
extern bool je_opt_retain;

// Makes an arena's page allocator. Freed extents of `oversize_bytes` and more are purged at once; wrapped to say of
// which. The rest is passed on: base, extent map, extent cache, time, decay times, statistics and their lock.
struct PageAllocator;
bool __real_je_pac_init(Thread*, PageAllocator*, void* base, void* map, void* cache, void* now, size_t oversize_bytes,
                        ssize_t dirty_decay_ms, ssize_t muzzy_decay_ms, void* statistics, void* lock);

// Size to class for small sizes, in steps of 8 bytes: entry 0 is for 0 bytes, entry 1 for 1 to 8. Filled when jemalloc
// starts; read by every small malloc.
extern unsigned char je_sz_size2index_tab[];
inline constexpr unsigned char kClassOf16Bytes = 1;

// The large path: blocks of 16 KiB and more that do not come from a thread cache. No lock is held here. Wrapped for
// the size rules (and nothing else sits between a program and a small block). `usable_bytes` is a size class.
void* __real_je_large_malloc(Thread*, Arena*, size_t usable_bytes, bool zero);
void* __real_je_large_palloc(Thread*, Arena*, size_t usable_bytes, size_t alignment, bool zero);
void* __real_je_large_ralloc(Thread*, Arena*, void* block, size_t usable_bytes, size_t alignment, bool zero,
                             ThreadCache*, ReallocHooks*);
void __real_je_large_dalloc(Thread*, Extent*);

// Where the large path gets a new block's extent; null when there is none. The extent has one page more than
// `usable_bytes`, so that the block may start anywhere in its first page (jemalloc's cache_oblivious). Wrapped for
// reallocs that move pages.
Extent* __real_je_arena_extent_alloc_large(Thread*, Arena*, size_t usable_bytes, size_t alignment, bool zero);

// Refills one bin of a thread cache and takes a block from it; null when the arena gets no memory. Only for programs'
// own allocations, so no lock is held. Wrapped for a second try.
void* __real_je_tcache_alloc_small_hard(Thread*, Arena*, ThreadCache*, CacheBin*, unsigned size_class, bool* refilled);

// Gives freed pages of an arena back, all of them or those whose time has come.
void je_arena_decay(Thread*, Arena*, bool is_background_thread, bool all);

// Called once for each thread; always false. The second sets up the thread cache: true when it gets no memory, which
// the first ignores. Wrapped for that case.
bool __real_je_tsd_tcache_enabled_data_init(Thread*);
bool je_tsd_tcache_data_init(Thread*);
void je_tsd_slow_update(Thread*);
extern bool je_opt_tcache;

// Chooses the arena of a thread at its first allocation, on the way to its thread cache; null without memory for a new
// one. Wrapped for that case.
Arena* __real_je_arena_choose_hard(Thread*, bool internal);
void je_arena_nthreads_inc(Arena*, bool internal);
void je_arena_migrate(Thread*, Arena* from, Arena* to);

// eset_t, the free extents of an arena by size: 9656 bytes of zeros but for the state of its extents. It lies in fresh
// memory of the arena's base. Wrapped so that only the state is written: a short-lived process touches seven pages
// less.
struct ExtentSet;
inline constexpr size_t kExtentSetBytes = 0x25b8;
inline constexpr size_t kExtentSetStateAt = 0x25b0;
void je_eset_init(ExtentSet*, uint32_t state);
void __real_je_eset_init(ExtentSet*, uint32_t state);
size_t je_eset_npages_get(ExtentSet*);

// pa_shard_t, the pages of an arena: how many are in use, and the extents that are free with their pages
// (ecache_dirty's eset). Any thread, without a lock.
struct PageShard {
    void* central;
    std::atomic<size_t> active_pages;
    ExtentSet* dirty_extents() { return reinterpret_cast<ExtentSet*>(reinterpret_cast<char*>(this) + 0xc0); }
};

// Every freed extent comes by here, no lock held. Wrapped to bound what stays.
void __real_je_pa_dalloc(Thread*, PageShard*, Extent*, bool* deferred_work);

// Runs about once per 64 KiB that a thread allocates or frees, no lock held. Wrapped for the start signal.
void __real_je_te_event_trigger(void* thread, EventContext*);

// jemalloc's own functions under names that a program's replacement of malloc cannot take over (--defsym).
void* jemalloc_malloc(size_t bytes) noexcept;
void jemalloc_free(void* block) noexcept;
void* jemalloc_calloc(size_t count, size_t bytes) noexcept;
int jemalloc_posix_memalign(void** block, size_t alignment, size_t bytes) noexcept;
size_t jemalloc_malloc_usable_size(void* block) noexcept;

// jemalloc's realloc (renamed): leaves errno alone when it fails.
void* jemalloc_realloc(void* block, size_t bytes) noexcept;

// jemalloc's aligned_alloc (renamed): refuses an alignment that is no power of two.
void* jemalloc_aligned_alloc(size_t alignment, size_t bytes) noexcept;

}    // extern "C"
}    // namespace pghot::jemalloc
