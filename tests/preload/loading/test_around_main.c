/* SPDX-License-Identifier: Apache-2.0 */
/* Memory before main and after it, the first of it before any constructor: .preinit_array comes before them all. */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/pghot/pghot.h"

int line_is_kept(void);    /* allocates_around_main.c */

enum { kBlocks = 300 };
static char *first_blocks[kBlocks], *early_blocks[kBlocks];

static void fail(const char *what)
{
    fprintf(stderr, "FAIL: %s\n", what);
    _exit(1);
}

static void fill(char **blocks)
{
    for (int i = 0; i < kBlocks; i++) {
        const size_t bytes = (size_t)i * 37 + 1;
        if (i % 5 == 0) blocks[i] = malloc(bytes);
        if (i % 5 == 1) blocks[i] = calloc(bytes, 1);
        if (i % 5 == 2) blocks[i] = realloc(malloc(10), bytes);
        if (i % 5 == 3) blocks[i] = memalign(64, bytes);
        if (i % 5 == 4) blocks[i] = malloc(300000);
        memset(blocks[i], i & 127, bytes);
    }
}

static void take_back(char **blocks)
{
    for (int i = 0; i < kBlocks; i++) {
        if (blocks[i][i * 37] != (i & 127) || pghot_placement_of(blocks[i]) < 0) fail("an early block");
        free(realloc(blocks[i], 777));
    }
}

static void *in_thread(void *unused)
{
    free(malloc(5000));
    return unused;
}

static void first_of_all(int argc, char **argv, char **environment)
{
    (void)argc; (void)argv; (void)environment;
    fill(first_blocks);
}
__attribute__((section(".preinit_array"), used)) static void (*hook)(int, char **, char **) = first_of_all;

__attribute__((constructor(101))) static void early(void)
{
    fill(early_blocks);
    for (int i = 0; i < 200; i++) {
        char name[32];
        snprintf(name, sizeof name, "EARLY_%d", i);
        setenv(name, "value", 1);
    }
    pthread_t thread;
    if (pthread_create(&thread, NULL, in_thread, NULL)) fail("no early thread");
    pthread_join(thread, NULL);
}

__attribute__((destructor(101))) static void late(void) { take_back(early_blocks); }

int main(void)
{
    if (!pghot_placement_of) fail("the library is not loaded");
    if (!getenv("EARLY_199") || strcmp(getenv("EARLY_0"), "value") != 0) fail("the environment set early is lost");
    if (!line_is_kept()) fail("the library's early block");
    take_back(first_blocks);
    puts("right");
    return 0;
}
