/* SPDX-License-Identifier: Apache-2.0 */
/* Writes what the malloc family answers to odd and plain arguments, as far as a program can depend on it: a block or
 * none, its alignment, errno. same_answers_as_libc.py compares the words with and without the library. */
#include <errno.h>
#include <gnu/libc-version.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/pghot/pghot.h"

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void *__libc_valloc(size_t);
extern void *__libc_pvalloc(size_t);

enum { kMarkedErrno = 77 };
#define MAX PTRDIFF_MAX

static const size_t sizes[] = {0, 1, 8, 15, 16, 17, 24, 100, 1000, 4096, 70000, 3000000,
                               (size_t)MAX + 1, SIZE_MAX - 4095, SIZE_MAX - 15, SIZE_MAX};
static const size_t alignments[] = {0, 1, 2, 3, 8, 16, 24, 32, 48, 64, 100, 4096, 5000, 1 << 21, (size_t)MAX + 1,
                                    (size_t)MAX + 2, SIZE_MAX};

/* Frees the block. `alignment` 0: that of any block. */
static void say(const char *call, size_t a, size_t b, void *block, size_t alignment)
{
    const int error = errno;
    if (alignment < 16) alignment = 16;
    printf("%s(%zu, %zu): ", call, a, b);
    if (block) printf("%s", (uintptr_t)block % alignment ? "a crooked block" : "a block");
    else printf("null");
    printf(" errno %d\n", error);
    free(block);
    errno = kMarkedErrno;
}

static size_t power_from(size_t alignment)
{
    size_t power = 1;
    while (power < alignment && power <= (size_t)MAX) power *= 2;
    return power;
}

/* aligned_alloc refuses alignments that are no power of two from 2.38 on. */
static int aligned_alloc_rounds_up(void)
{
    int major = 0, minor = 0;
    if (sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor) != 2) return 0;
    return major == 2 && minor < 38;
}

static void of_one_size(size_t n)
{
    say("malloc", n, 0, malloc(n), 0);
    say("calloc", n, 1, calloc(n, 1), 0);
    say("calloc", 1, n, calloc(1, n), 0);
    say("calloc", n, 3, calloc(n, 3), 0);
    say("realloc of null", n, 0, realloc(NULL, n), 0);
    say("reallocarray of null", n, 5, reallocarray(NULL, n, 5), 0);
    say("valloc", n, 0, valloc(n), 4096);
    say("pvalloc", n, 0, pvalloc(n), 4096);
    say("__libc_malloc", n, 0, __libc_malloc(n), 0);
    say("__libc_calloc", n, 3, __libc_calloc(n, 3), 0);
    say("__libc_realloc of null", n, 0, __libc_realloc(NULL, n), 0);
    say("__libc_valloc", n, 0, __libc_valloc(n), 4096);
    say("__libc_pvalloc", n, 0, __libc_pvalloc(n), 4096);
}

static void of_alignment_and_size(size_t alignment, size_t n)
{
    const size_t power = power_from(alignment);
    say("memalign", alignment, n, memalign(alignment, n), power);
    say("__libc_memalign", alignment, n, __libc_memalign(alignment, n), power);
    if (alignment == power || aligned_alloc_rounds_up())
        say("aligned_alloc", alignment, n, aligned_alloc(alignment, n), power);
    void *block = NULL;
    printf("posix_memalign answers %d: ", posix_memalign(&block, alignment, n));
    errno = kMarkedErrno;    /* which it may or may not set */
    say("posix_memalign", alignment, n, block, power);
}

/* A block of `from` bytes made to one of `to`: whether its bytes are kept, and whether a failure leaves it. */
static void of_realloc(size_t from, size_t to)
{
    char *block = malloc(from);
    memset(block, 'x', from);
    errno = kMarkedErrno;
    char *moved = realloc(block, to);
    const int error = errno;
    const size_t both = from < to ? from : to;
    size_t kept = 0;
    if (moved) while (kept < both && moved[kept] == 'x') kept++;
    printf("realloc(%zu bytes, %zu): %s errno %d, %zu bytes kept\n", from, to, moved ? "a block" : "null", error, kept);
    free(moved);
    if (!moved && to != 0) {
        printf("the old block: %c\n", block[from - 1]);
        free(block);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "preloaded") == 0 && !pghot_placement_of) {
        fputs("FAIL: the library is not loaded\n", stderr);
        return 1;
    }
    errno = kMarkedErrno;
    const size_t size_count = sizeof sizes / sizeof *sizes;
    for (size_t i = 0; i < size_count; i++) of_one_size(sizes[i]);
    for (size_t a = 0; a < sizeof alignments / sizeof *alignments; a++)
        for (size_t i = 0; i < size_count; i++) of_alignment_and_size(alignments[a], sizes[i]);
    for (size_t from = 1; from < size_count && sizes[from] <= 3000000; from++)
        for (size_t to = 0; to < size_count; to++) of_realloc(sizes[from], sizes[to]);
    printf("malloc_info with an option: %d\n", malloc_info(1, stdout));
    printf("malloc_usable_size of null: %zu\n", malloc_usable_size(NULL));
    return 0;
}
