/* SPDX-License-Identifier: Apache-2.0 */
/* Another tool's preload library that counts calls: it looks the next functions up when it is first called, is called
 * by that very look-up, and allocates in its constructor. What is asked of it before it knows the next malloc comes out
 * of a small pool of its own. With FROM_LIBC it takes the functions out of libc by its handle. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/preload/loading/counting_wrapper.h"

static _Thread_local int looking;
static _Alignas(16) char pool[1 << 16];
static size_t pool_used;
static int calls;
static char *noted;

int wrapper_calls(void) { return __atomic_load_n(&calls, __ATOMIC_RELAXED); }

static void *next(const char *name)
{
    looking++;
#ifdef FROM_LIBC
    void *found = dlsym(dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), name);
#else
    void *found = dlsym(RTLD_NEXT, name);
#endif
    looking--;
    if (!found) abort();
    return found;
}

static void *from_pool(size_t bytes)
{
    bytes = (bytes + 15) / 16 * 16;
    const size_t at = __atomic_fetch_add(&pool_used, bytes, __ATOMIC_RELAXED);
    if (at + bytes > sizeof pool) abort();
    return pool + at;
}

static int in_pool(const void *block)
{
    return (const char *)block >= pool && (const char *)block < pool + sizeof pool;
}

#define NEXT(name) \
    static __typeof__(name) *real; \
    if (!real) real = (__typeof__(name) *)next(#name); \
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED)

void *malloc(size_t bytes)
{
    if (looking) return from_pool(bytes);
    NEXT(malloc);
    return real(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    if (looking) return from_pool(count * bytes);    /* zero, and used once */
    NEXT(calloc);
    return real(count, bytes);
}

void *realloc(void *block, size_t bytes)
{
    if (in_pool(block)) return memcpy(malloc(bytes), block, bytes);    /* the pool is longer than any of its blocks */
    NEXT(realloc);
    return real(block, bytes);
}

void free(void *block)
{
    if (!block || in_pool(block)) return;
    NEXT(free);
    real(block);
}

__attribute__((constructor)) static void loaded(void)
{
    free(realloc(calloc(3, 1000), 50000));
    if (asprintf(&noted, "%d calls at load", calls) < 0) abort();
}
__attribute__((destructor)) static void ends(void) { free(noted); }
