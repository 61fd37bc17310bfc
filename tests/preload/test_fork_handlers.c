/* SPDX-License-Identifier: Apache-2.0 */
/* Forks under allocating threads, with handlers that allocate, registered as early and as late as can be. Plain C: no
 * C++ library allocates before. ctest's timeout is the verdict on a deadlock. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/pghot/pghot.h"

extern int early_handler_calls;    /* early_fork_handlers.c */
static volatile int stop;

static void allocate(void) { free(malloc(300000)); }

static void *churn(void *seed)
{
    unsigned state = (unsigned)(size_t)seed;
    void *blocks[32] = {0};
    while (!stop) {
        int i = rand_r(&state) % 32;
        free(blocks[i]);
        blocks[i] = malloc((size_t)rand_r(&state) % 400000);
    }
    for (int i = 0; i < 32; i++) free(blocks[i]);
    return NULL;
}

int main(void)
{
    enum { kForks = 100, kThreads = 3 };
    if (!pghot_placement_of) { fputs("FAIL: the library is not loaded\n", stderr); return 1; }
    pthread_atfork(allocate, allocate, allocate);
    pthread_t threads[kThreads];
    for (size_t i = 0; i < kThreads; i++) pthread_create(&threads[i], NULL, churn, (void *)(i + 1));
    for (int i = 0; i < kForks; i++) {
        pid_t child = fork();
        if (child == 0) {
            allocate();
            _exit(0);
        }
        int status = 0;
        if (waitpid(child, &status, 0) != child || status != 0) { fprintf(stderr, "FAIL: child %d ended with %x\n", i, status); return 1; }
    }
    stop = 1;
    for (int i = 0; i < kThreads; i++) pthread_join(threads[i], NULL);
    if (early_handler_calls != 2 * kForks) { fprintf(stderr, "FAIL: early handlers ran %d times\n", early_handler_calls); return 1; }
    puts("right");
    return 0;
}
