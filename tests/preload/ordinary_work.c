/* SPDX-License-Identifier: Apache-2.0 */
/* usage: ordinary_work MIB THREADS [descriptors=COUNT | deny=ANSWER:CALL,...]
 * What programs do all day, with every byte checked: an array that grows to MIB by realloc, blocks of all sizes that one
 * thread makes and another frees, a child that allocates. Says one line that is always the same and ends with status 7.
 * What the surroundings refuse (threads, a child) it does without, as programs do. It may first
 * take something from itself: descriptors beyond COUNT, or system calls (limits/deny.h). */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/preload/limits/deny.h"

enum { kSlots = 64, kTurns = 3000, kMaxThreads = 16 };

static struct {
    pthread_mutex_t lock;
    unsigned char *block;
    size_t bytes;
} slots[kSlots];

static void fail(const char *what, size_t figure)
{
    fprintf(stderr, "FAIL: %s %zu\n", what, figure);
    _exit(1);
}

static unsigned char mark(size_t bytes) { return (unsigned char)(bytes * 7 + 1); }

static void check_and_free(unsigned char *block, size_t bytes)
{
    if (!block) return;
    for (size_t at = 0; at < bytes; at += 509)
        if (block[at] != mark(bytes)) fail("a byte changed in a block of", bytes);
    if (block[bytes - 1] != mark(bytes)) fail("the last byte changed in a block of", bytes);
    free(block);
}

static size_t next_size(uint32_t *seed, int turn)
{
    *seed = *seed * 1664525 + 1013904223;
    const uint32_t random = *seed >> 8;
    if (turn % 200 == 0) return 1 + random % 3000000;
    return 1 + random % (turn % 20 == 0 ? 100000 : 2000);
}

static void *turns(void *argument)
{
    uint32_t seed = (uint32_t)(uintptr_t)argument;
    for (int turn = 0; turn < kTurns; turn++) {
        const size_t bytes = next_size(&seed, turn);
        unsigned char *block = malloc(bytes);
        if (!block) fail("no memory for", bytes);
        memset(block, mark(bytes), bytes);
        const unsigned slot = (seed >> 5) % kSlots;
        pthread_mutex_lock(&slots[slot].lock);
        unsigned char *before = slots[slot].block;
        const size_t before_bytes = slots[slot].bytes;
        slots[slot].block = block;
        slots[slot].bytes = bytes;
        pthread_mutex_unlock(&slots[slot].lock);
        check_and_free(before, before_bytes);
    }
    return NULL;
}

static void threads_share_blocks(int count)
{
    pthread_attr_t small_stack;
    pthread_t started[kMaxThreads];
    int running = 0;
    pthread_attr_init(&small_stack);
    pthread_attr_setstacksize(&small_stack, 256 << 10);
    for (int i = 0; i < kSlots; i++) pthread_mutex_init(&slots[i].lock, NULL);
    for (int i = 0; i < count && i < kMaxThreads; i++)
        if (!pthread_create(&started[running], &small_stack, turns, (void *)(uintptr_t)(i + 1))) running++;
    turns((void *)(uintptr_t)99);
    for (int i = 0; i < running; i++) pthread_join(started[i], NULL);
    for (int i = 0; i < kSlots; i++) check_and_free(slots[i].block, slots[i].bytes);
}

static void an_array_grows(size_t top)
{
    size_t bytes = 4096;
    unsigned char *array = calloc(1, bytes);
    while (array && bytes < top) {
        const size_t more = bytes + bytes / 2 < top ? bytes + bytes / 2 : top;
        array = realloc(array, more);
        if (!array) fail("no memory for an array of", more);
        for (size_t at = bytes; at < more; at += 4096) array[at] = (unsigned char)(at >> 12);
        array[more - 1] = 1;
        bytes = more;
    }
    if (!array || array[0] != 0) fail("the array lost its beginning at", bytes);
    free(array);
}

static void a_child_allocates(void)
{
    const pid_t child = fork();
    if (child < 0) return;
    if (child == 0) {
        an_array_grows(2 << 20);
        _exit(5);
    }
    int status = 0;
    if (waitpid(child, &status, 0) == child && status != 5 << 8) fail("the child ended with", (size_t)status);
}

static void allow_descriptors(rlim_t count)
{
    const struct rlimit limit = {count, count};
    if (setrlimit(RLIMIT_NOFILE, &limit)) fail("setrlimit refused", (size_t)count);
}

static void restrict_oneself(const char *wish)
{
    if (!strncmp(wish, "descriptors=", 12))
        allow_descriptors((rlim_t)atoi(wish + 12));
    else if (strncmp(wish, "deny=", 5) || !deny(wish + 5))
        fail("cannot be denied", 0);
}

int main(int argc, char **argv)
{
    const size_t mib = argc > 1 ? (size_t)atoi(argv[1]) : 16;
    const int threads = argc > 2 ? atoi(argv[2]) : 2;
    if (argc > 3) restrict_oneself(argv[3]);
    an_array_grows(mib << 20);
    threads_share_blocks(threads);
    a_child_allocates();
    an_array_grows(mib << 20);
    puts("all bytes right");
    return 7;
}
