/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Each way to get a block, given back in each way, from several threads. An allocator that answers for some of the
 * names only, beside another that answers for the rest, gets a block that it never gave. */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void fail(const char* what) {
    fprintf(stderr, "FAIL: %s\n", what);
    _exit(1);
}

static void* by_posix_memalign(size_t bytes) {
    void* block = NULL;
    return posix_memalign(&block, 64, bytes) == 0 ? block : NULL;
}
static void* by_malloc(size_t bytes) { return malloc(bytes); }
static void* by_calloc(size_t bytes) { return calloc(1, bytes); }
static void* by_realloc(size_t bytes) { return realloc(NULL, bytes); }
static void* by_reallocarray(size_t bytes) { return reallocarray(NULL, 1, bytes); }
static void* by_memalign(size_t bytes) { return memalign(64, bytes); }
static void* by_aligned_alloc(size_t bytes) { return aligned_alloc(64, bytes); }
static void* by_valloc(size_t bytes) { return valloc(bytes); }
static void* by_pvalloc(size_t bytes) { return pvalloc(bytes); }
static void* by_libc(size_t bytes) {
    char* line = NULL;
    if (asprintf(&line, "%*s", (int)bytes, "x") < 0) return NULL;
    return line;
}

typedef void* way_to_allocate(size_t bytes);
static way_to_allocate* const ways[] = {by_malloc,        by_calloc, by_realloc, by_reallocarray,   by_memalign,
                                        by_aligned_alloc, by_valloc, by_pvalloc, by_posix_memalign, by_libc};
enum { kWays = sizeof ways / sizeof *ways };

static void give_back(char* block, size_t bytes, int how) {
    if (malloc_usable_size(block) < bytes) fail("usable size");
    memset(block, how, bytes);
    if (how == 1) block = realloc(block, bytes * 3 + 1);
    if (how == 2) block = realloc(block, bytes / 3 + 1);
    if (how == 3) block = reallocarray(block, 3, bytes);
    if (!block || *block != (char)how) fail("contents after realloc");
    free(block);
}

static void* every_way(void* unused) {
    static const size_t sizes[] = {1, 24, 400, 5000, 70000, 1500000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int way = 0; way < kWays; way++)
            for (int how = 0; how < 4; how++) {
                char* block = ways[way](sizes[i]);
                if (!block) fail("no memory");
                give_back(block, sizes[i], how);
            }
    return unused;
}

static inline void every_way_in_threads(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, every_way, NULL)) fail("no thread");
    every_way(NULL);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
}
