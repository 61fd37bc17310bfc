# SPDX-License-Identifier: Apache-2.0
# The one list of what is changed in jemalloc's archive and of what is wrapped at link time. Prototypes and reasons:
# jemalloc_api.h (wrapped functions), page_calls.cc and surroundings.cc (renamed calls).

set(PGHOT_JEMALLOC_SUPPORTED_VERSIONS 5.3.0)

# "name in the archive=name of ours".
set(PGHOT_JEMALLOC_RENAMED
    # Page calls: every arena, oversize blocks and metadata pass here from the first byte (page_calls.cc).
    mmap=jemalloc_page_map
    munmap=jemalloc_page_unmap
    madvise=jemalloc_page_advise
    # Surroundings that jemalloc's start asks under its lock (surroundings.cc).
    readlink=jemalloc_readlink
    sysconf=jemalloc_sysconf
    secure_getenv=jemalloc_getenv
    sched_getaffinity=jemalloc_sched_getaffinity
    syscall=jemalloc_system_call
    # Back ends of the heap profiler, which is off for good; they would need libm and libgcc_s.
    exp=jemalloc_exp
    log=jemalloc_log
    round=jemalloc_round
    _Unwind_Backtrace=jemalloc_backtrace
    _Unwind_GetIP=jemalloc_backtrace_address
    # Functions whose failures do not set errno, or that refuse what the GNU C library takes; preload/entry_points.cc has
    # ours.
    realloc=jemalloc_realloc
    aligned_alloc=jemalloc_aligned_alloc
    memalign=jemalloc_unused_memalign
    valloc=jemalloc_unused_valloc)

set(PGHOT_JEMALLOC_WRAPPED
    je_large_malloc je_large_palloc je_large_ralloc je_large_dalloc je_arena_extent_alloc_large
    je_pac_init je_pa_dalloc je_eset_init je_tcache_alloc_small_hard je_arena_choose_hard je_tsd_tcache_enabled_data_init je_te_event_trigger)

# jemalloc's own functions under names that a program's replacement of malloc cannot take over.
set(PGHOT_JEMALLOC_ALIASES malloc free calloc posix_memalign malloc_usable_size)

# Large members that a start does not run: behind all others, so that starting touches fewer pages of code.
set(PGHOT_JEMALLOC_LAST hpa hpa_hooks hpdata psset inspect prof_data prof_log prof_recent prof_stats prof_sys ctl)
