/* SPDX-License-Identifier: Apache-2.0 */
/* usage: test_ways_to_end main|thread|quick_exit|exit_in_handler
 * However a program ends, what runs on the way out allocates and frees, after the library's own destructor too, and
 * while other threads still allocate. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/pghot/pghot.h"

static _Thread_local char *kept;
static const char *way;

static void fail(const char *what)
{
    fprintf(stderr, "FAIL: %s\n", what);
    _exit(1);
}

static void allocate(void)
{
    for (size_t bytes = 1; bytes < 5000000; bytes *= 7) {
        char *block = malloc(bytes);
        if (!block) fail("no memory");
        memset(block, 1, bytes);
        free(realloc(block, bytes * 2));
    }
    kept = realloc(kept, 100000);
}

static void *without_end(void *unused)
{
    for (unsigned seed = 1;;) free(malloc((size_t)rand_r(&seed) % 50000 + 1));
    return unused;
}

static void say_right(void)
{
    allocate();
    if (write(1, "right\n", 6) != 6) _exit(1);
}

static void end_again(void)
{
    allocate();
    if (strcmp(way, "exit_in_handler") == 0) exit(0);
}

__attribute__((destructor(101))) static void last_of_all(void) { allocate(); }

static void *end_from_thread(void *unused)
{
    allocate();
    exit(0);
    return unused;
}

int main(int argc, char **argv)
{
    if (argc != 2) fail("usage");
    if (!pghot_placement_of) fail("the library is not loaded");
    way = argv[1];
    atexit(say_right);
    atexit(end_again);
    at_quick_exit(say_right);
    pthread_t thread;
    for (int i = 0; i < 2; i++)
        if (pthread_create(&thread, NULL, without_end, NULL)) fail("no thread");
    allocate();
    if (strcmp(way, "quick_exit") == 0) quick_exit(0);
    if (strcmp(way, "thread") == 0) {
        if (pthread_create(&thread, NULL, end_from_thread, NULL)) fail("no thread");
        pthread_exit(NULL);
    }
    return 0;
}
