/* SPDX-License-Identifier: Apache-2.0 */
/* A program with a known result, to be run while kernel calls are refused (refuse.cc): whatever is refused, it prints the
 * same line. Its threads are called "armed" once they are ready, and "thread_maker" while they start another.
 *
 *   refused_program hot MILLISECONDS   memory of the lower node in use all the time, other memory comes, grows and goes
 *   refused_program allocate           each way to allocate, often; no memory is an answer, a wrong one is not */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/mempolicy.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "include/pghot/pghot.h"

enum { HOT_BYTES = 4 << 20, PAGE_BYTES = 4096, HUGE_BYTES = 2 << 20, LINE_BYTES = 64, WORDS = LINE_BYTES / 8, LOWER_NODE = 2 };
static const size_t FIRST_BYTES = 1 << 20, MOST_BYTES = 48 << 20;

static void fail(const char *what)
{
    fprintf(stderr, "FAIL: %s\n", what);
    _exit(1);
}

/* A refusal must come with its errno. */
static void *checked(void *block)
{
    if (!block && errno != ENOMEM) fail("no memory, and errno does not say so");
    return block;
}

static uint64_t word(size_t index) { return (index + 1) * 0x9e3779b97f4a7c15u; }

/* A word in each line of a block: pages move, lines do not. */
static void fill(uint64_t *block, size_t begin_bytes, size_t end_bytes)
{
    for (size_t i = (begin_bytes + LINE_BYTES - 1) / LINE_BYTES * WORDS; i < end_bytes / 8; i += WORDS) block[i] = word(i);
}

static void check(const uint64_t *block, size_t bytes, const char *what)
{
    for (size_t i = 0; i < bytes / 8; i += WORDS)
        if (block[i] != word(i)) fail(what);
}

/* A large array that grows: every byte must come along, and a refused growth must leave the array as it was. */
static void grow_an_array(void)
{
    size_t bytes = FIRST_BYTES;
    uint64_t *block = checked(malloc(bytes));
    if (!block) return;
    fill(block, 0, bytes);
    while (bytes < MOST_BYTES) {
        const size_t more = bytes + bytes / 2;
        uint64_t *grown = checked(realloc(block, more));
        if (!grown) break;
        block = grown;
        fill(block, bytes, more);
        bytes = more;
    }
    check(block, bytes, "a grown array has other contents");
    uint64_t *cut = realloc(block, FIRST_BYTES / 2);
    if (cut) block = cut;
    check(block, FIRST_BYTES / 2, "a cut array has other contents");
    free(block);
}

static void allocate_every_way(void)
{
    static const size_t sizes[] = {8, 200, 5000, 20000, 70000, 300000, 5 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const size_t bytes = sizes[i];
        errno = 0;
        uint64_t *plain = checked(malloc(bytes));
        uint64_t *zeroed = checked(calloc(1, bytes));
        uint64_t *aligned = checked(memalign(1 << 16, bytes));
        void *posix = NULL;
        const int refused = posix_memalign(&posix, 1 << 21, bytes);
        if (refused != 0 && refused != ENOMEM) fail("posix_memalign");
        for (size_t word_at = 0; zeroed && word_at < bytes / 8; word_at++)
            if (zeroed[word_at] != 0) fail("calloc gave bytes that are not zero");
        if ((uintptr_t)aligned % (1 << 16) || (uintptr_t)posix % (1 << 21)) fail("alignment");
        uint64_t *all[] = {plain, zeroed, aligned, posix};
        for (size_t k = 0; k < 4; k++)
            if (all[k]) fill(all[k], 0, bytes);
        for (size_t k = 0; k < 4; k++)
            if (all[k]) check(all[k], bytes, "a block has other contents");
        for (size_t k = 0; k < 4; k++) free(all[k]);
    }
    malloc_trim(0);
}

/* What is refused is refused to threads of a name. */
static void name_thread(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

static void use_some_memory(void)
{
    char *block = malloc(200000);
    if (block) memset(block, 'x', 200000);
    free(block);
}

static void *short_thread(void *unused)
{
    name_thread("armed");
    use_some_memory();
    return unused;
}

/* Stack and start of a thread are the program's affair. */
static void run_a_thread(void)
{
    pthread_t thread;
    name_thread("thread_maker");
    if (pthread_create(&thread, NULL, short_thread, NULL) == 0) pthread_join(thread, NULL);
    name_thread("armed");
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Memory of the lower node without a policy of its own, as it is where the machine was full. Half of it in base pages. */
static uint64_t *hot_memory(void)
{
    const unsigned long lower = 1ul << LOWER_NODE;
    syscall(SYS_set_mempolicy, MPOL_PREFERRED, &lower, 64);
    uint64_t *hot = aligned_alloc(HUGE_BYTES, HOT_BYTES);
    if (!hot) fail("no memory to begin with");
    madvise(hot, HOT_BYTES, MADV_HUGEPAGE);
    madvise(hot, HOT_BYTES / 2, MADV_NOHUGEPAGE);
    fill(hot, 0, HOT_BYTES);
    syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0);
    return hot;
}

static void use_for(uint64_t *hot, double seconds)
{
    const double end = now() + seconds;
    for (size_t round = 0; now() < end; round++) {
        const size_t line = round * 7 % (PAGE_BYTES / LINE_BYTES);
        for (size_t at = line * LINE_BYTES; at < HOT_BYTES; at += PAGE_BYTES) {
            volatile uint64_t *used = hot + at / 8;
            if (*used != word(at / 8)) fail("memory in use has other contents");
            *used = word(at / 8);
        }
        use_some_memory();
    }
}

static void run_hot(double seconds)
{
    uint64_t *hot = hot_memory();
    name_thread("armed");
    run_a_thread();
    use_for(hot, seconds);
    grow_an_array();
    check(hot, HOT_BYTES, "memory in use has other contents at the end");
    uint64_t sum = 0;
    for (size_t i = 0; i < HOT_BYTES / 8; i += WORDS) sum += hot[i];
    printf("right %016lx\n", sum);
    free(hot);
}

static void run_allocate(void)
{
    name_thread("armed");
    for (int round = 0; round < 2; round++) {
        allocate_every_way();
        grow_an_array();
        run_a_thread();
    }
    printf("right\n");
}

int main(int count, char **arguments)
{
    if (!pghot_placement_of) fail("the library is not loaded");
    if (count == 3 && strcmp(arguments[1], "hot") == 0)
        run_hot(atoi(arguments[2]) / 1000.0);
    else if (count == 2 && strcmp(arguments[1], "allocate") == 0)
        run_allocate();
    else
        return 2;
    return 0;
}
