// SPDX-License-Identifier: Apache-2.0
// Plain C programs under the library, one behaviour a case: `test_x CASE`. No C++ library, which allocates before main
// does. A case that returns has passed; ctest's timeout is the verdict on a hang.
#pragma once

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/pghot/pghot.h"

enum { kSkipped = 77 };

struct Case {
    const char* name;
    void (*run)(void);
};

// _exit: a child must not run the parent's exit handlers.
#define REQUIRE(condition)                                                                              \
    do {                                                                                                \
        if (!(condition)) {                                                                             \
            fprintf(stderr, "%s:%d: not true: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno); \
            _exit(1);                                                                                   \
        }                                                                                               \
    } while (0)

#define SKIP(reason)    \
    do {                \
        puts(reason);   \
        exit(kSkipped); \
    } while (0)

static inline int run_case(int count, char** arguments, const struct Case* cases, size_t known) {
    REQUIRE(pghot_placement_of != NULL);    // run under LD_PRELOAD=.../libpghot.so
    for (size_t i = 0; count > 1 && i < known; i++) {
        if (strcmp(arguments[1], cases[i].name) != 0) continue;
        cases[i].run();
        return 0;
    }
    fprintf(stderr, "no such case\n");
    return 2;
}
#define RUN_CASE(count, arguments, cases) run_case(count, arguments, cases, sizeof(cases) / sizeof *(cases))

// What a wait says as one number: the exit status, or minus the signal.
static inline int end_of(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0) REQUIRE(errno == EINTR);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// A child that a timeout of the test does not leave behind.
static inline pid_t fork_child(void) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
    return child;
}

// How `body` ends in a child; a body that returns exits with 0.
static inline int end_in_child(void (*body)(void)) {
    const pid_t child = fork_child();
    if (child == 0) {
        body();
        exit(0);
    }
    return end_of(child);
}

// One of 64 blocks is replaced: mostly small, some from the arena, some mapped of their own. Contents are checked.
enum { kBlocks = 64 };
struct Blocks {
    unsigned char* at[kBlocks];
    size_t bytes[kBlocks];
    unsigned state;
};

static inline size_t any_size(unsigned* state) {
    const int kind = rand_r(state) % 100;
    if (kind == 0) return 1 + (size_t)rand_r(state) % 3000000;
    if (kind < 10) return 1 + (size_t)rand_r(state) % 100000;
    return 1 + (size_t)rand_r(state) % 2000;
}

static inline void replace_block(struct Blocks* blocks) {
    const int i = rand_r(&blocks->state) % kBlocks;
    const size_t bytes = any_size(&blocks->state);
    if (blocks->at[i] != NULL) REQUIRE(blocks->at[i][0] == i && blocks->at[i][blocks->bytes[i] - 1] == i);
    if (rand_r(&blocks->state) % 3 == 0) {
        blocks->at[i] = realloc(blocks->at[i], bytes);
    } else {
        free(blocks->at[i]);
        blocks->at[i] = malloc(bytes);
    }
    REQUIRE(blocks->at[i] != NULL);
    blocks->at[i][0] = blocks->at[i][bytes - 1] = (unsigned char)i;
    blocks->bytes[i] = bytes;
}

static inline void free_blocks(struct Blocks* blocks) {
    for (int i = 0; i < kBlocks; i++) free(blocks->at[i]);
    memset(blocks->at, 0, sizeof blocks->at);
}

static inline void allocate_some(unsigned seed, int times) {
    struct Blocks blocks = {.state = seed};
    for (int i = 0; i < times; i++) replace_block(&blocks);
    free_blocks(&blocks);
}

// Threads that allocate until told to stop.
enum { kMostBusy = 8 };
struct Busy {
    pthread_t threads[kMostBusy];
    int count;
};
static volatile int busy_end __attribute__((unused));

__attribute__((unused)) static void* stay_busy(void* seed) {
    struct Blocks blocks = {.state = (unsigned)(size_t)seed};
    while (!busy_end) replace_block(&blocks);
    free_blocks(&blocks);
    return NULL;
}

static inline pthread_t start_thread(void* (*body)(void*), void* argument) {
    pthread_t thread;
    const int error = pthread_create(&thread, NULL, body, argument);
    REQUIRE(error == 0);
    return thread;
}

static inline struct Busy start_busy(int count) {
    struct Busy busy = {.count = count};
    busy_end = 0;
    for (int i = 0; i < count; i++) busy.threads[i] = start_thread(stay_busy, (void*)(size_t)(i + 1));
    return busy;
}

static inline void end_busy(struct Busy* busy) {
    busy_end = 1;
    for (int i = 0; i < busy->count; i++) pthread_join(busy->threads[i], NULL);
}
