/* SPDX-License-Identifier: Apache-2.0 */
/* Coroutines and threads with small stacks, a forbidden page on either side: the first thing they do is allocate, of
 * every size, and grow, and fail. A signal handler on a stack of its own interrupts all of it. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include "include/pghot/pghot.h"

enum { kPage = 4096, kBlocks = 64 };

static _Thread_local ucontext_t home;
static _Thread_local int ended;
static volatile sig_atomic_t ticks;
static volatile size_t too_much = (size_t)1 << 50;    /* an allowed size, more than there are addresses */

static void fail(const char *what)
{
    fprintf(stderr, "FAIL: %s\n", what);
    _exit(1);
}

static void allocate(void)
{
    static _Thread_local void *blocks[kBlocks];
    for (int i = 0; i < kBlocks; i++) {
        const size_t bytes = (size_t)1 << (i % 25);
        if (i % 3 == 0) blocks[i] = malloc(bytes);
        if (i % 3 == 1) blocks[i] = calloc(1, bytes);
        if (i % 3 == 2) blocks[i] = aligned_alloc(64, (bytes + 63) / 64 * 64);
        if (!blocks[i]) fail("no memory");
        *(char *)blocks[i] = 1;
    }
    for (int i = 0; i < kBlocks; i += 2) blocks[i] = realloc(blocks[i], i % 4 ? 3000 : 300000);
    for (int i = 0; i < kBlocks; i++) free(blocks[i]);
    errno = 0;
    if (malloc(too_much) || errno != ENOMEM) fail("too much was to be had");
    ended = 1;
}

static char *guarded(size_t bytes)
{
    char *at = mmap(NULL, bytes + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || mprotect(at + kPage, bytes, PROT_READ | PROT_WRITE)) fail("no stack");
    return at + kPage;
}

static void on_coroutine(char *stack, size_t bytes)
{
    ucontext_t coroutine;
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = stack;
    coroutine.uc_stack.ss_size = bytes;
    coroutine.uc_link = &home;
    makecontext(&coroutine, allocate, 0);
    ended = 0;
    swapcontext(&home, &coroutine);
    if (!ended) fail("the coroutine did not end");
}

static void *coroutines(void *stack_bytes)
{
    const size_t bytes = (size_t)stack_bytes;
    for (int i = 0; i < 5; i++) {
        char *stack = guarded(bytes);
        on_coroutine(stack, bytes);
        munmap(stack - kPage, bytes + 2 * kPage);
    }
    char *stack = malloc(32768);    /* a stack in a block of the heap */
    on_coroutine(stack, 32768);
    free(stack);
    return NULL;
}

static void *thread(void *unused)
{
    allocate();
    return unused;
}

static void in_new_thread(void *(*run)(void *), void *argument, size_t stack_bytes)
{
    pthread_attr_t attributes;
    pthread_t id;
    pthread_attr_init(&attributes);
    if (stack_bytes && pthread_attr_setstacksize(&attributes, stack_bytes)) fail("a stack size is refused");
    if (pthread_create(&id, &attributes, run, argument)) fail("no thread");
    pthread_join(id, NULL);
    pthread_attr_destroy(&attributes);
}

static void tick(int signal)
{
    (void)signal;
    ticks++;
}

static void start_ticking(void)
{
    stack_t own = {.ss_sp = guarded(16384), .ss_size = 16384};
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_ONSTACK | SA_RESTART};
    const struct itimerval timer = {.it_interval = {.tv_usec = 500}, .it_value = {.tv_usec = 500}};
    if (sigaltstack(&own, NULL) || sigaction(SIGALRM, &action, NULL)) fail("no handler");
    setitimer(ITIMER_REAL, &timer, NULL);
}

int main(void)
{
    if (!pghot_placement_of) fail("the library is not loaded");
    static const size_t stacks[] = {8192, 12288, 16384, 65536};
    for (int i = 0; i < 4; i++) in_new_thread(coroutines, (void *)stacks[i], 0);
    for (int i = 0; i < 4; i++) coroutines((void *)stacks[i]);
    for (int i = 0; i < 20; i++) in_new_thread(thread, NULL, PTHREAD_STACK_MIN + (size_t)i % 2 * 16384);
    start_ticking();
    while (ticks < 100) allocate();
    puts("right");
    return 0;
}
