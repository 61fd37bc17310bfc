// SPDX-License-Identifier: Apache-2.0
// A forked child has an allocator that it can use, whatever the parent's threads did at that moment.
#define _GNU_SOURCE
#include <sched.h>
#include <sys/syscall.h>

#include "tests/preload/cases.h"

enum { kForkers = 2, kForks = 5000 };

static void child_allocates(void)
{
    // The sizes differ from child to child: every lock of the allocator is met sooner or later.
    allocate_some((unsigned)getpid(), 8);
    char *large = malloc(70000);
    REQUIRE(large != NULL);
    large[69999] = 1;
    large = realloc(large, 3000000);
    REQUIRE(large != NULL && large[69999] == 1);
    free(realloc(large, 40));
}

static void *fork_many(void *unused)
{
    for (int i = 0; i < kForks; i++) {
        char *of_parent = malloc(50000);
        of_parent[0] = of_parent[49999] = 7;
        const pid_t child = fork_child();
        if (child == 0) {
            REQUIRE(of_parent[0] == 7 && of_parent[49999] == 7);
            free(of_parent);
            child_allocates();
            _exit(0);
        }
        REQUIRE(end_of(child) == 0);
        free(of_parent);
    }
    return unused;
}

static void threads_fork_while_others_allocate(void)
{
    struct Busy busy = start_busy(1);
    pthread_t forkers[kForkers];
    for (int i = 0; i < kForkers; i++) forkers[i] = start_thread(fork_many, NULL);
    for (int i = 0; i < kForkers; i++) pthread_join(forkers[i], NULL);
    end_busy(&busy);
}

static void *allocate_in_thread(void *seed)
{
    allocate_some((unsigned)(size_t)seed, 300);
    return NULL;
}

static void live_with_threads(void)
{
    pthread_t threads[3];
    for (size_t i = 0; i < 3; i++) threads[i] = start_thread(allocate_in_thread, (void *)(i + 1));
    for (size_t i = 0; i < 3; i++) pthread_join(threads[i], NULL);
}

// Leaves through exit(), with handlers and destructors.
static void child_starts_threads_and_exits(void)
{
    struct Busy busy = start_busy(2);
    for (int i = 0; i < 50; i++) REQUIRE(end_in_child(live_with_threads) == 0);
    end_busy(&busy);
}

static int generations_left = 6;

static void live_and_fork_again(void)
{
    struct Busy busy = start_busy(2);
    child_allocates();
    if (--generations_left > 0) REQUIRE(end_in_child(live_and_fork_again) == 0);
    end_busy(&busy);
}

static void every_generation_forks_with_busy_threads(void)
{
    for (int i = 0; i < 10; i++) REQUIRE(end_in_child(live_and_fork_again) == 0);
}

// What checkpointers and sandboxes do: no fork handler runs, the C library knows of nothing. With one thread in the
// parent no lock can be held.
static void clone_without_fork_handlers(void)
{
    char *of_parent = malloc(100000);
    memset(of_parent, 5, 100000);
    for (int i = 0; i < 300; i++) {
        const pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
        REQUIRE(child >= 0);
        if (child == 0) {
            REQUIRE(of_parent[99999] == 5);
            free(of_parent);
            child_allocates();
            live_with_threads();
            if (i % 2 == 0) exit(0);
            // An ordinary fork out of it.
            const pid_t grandchild = fork();
            if (grandchild == 0) {
                child_allocates();
                exit(0);
            }
            exit(end_of(grandchild));
        }
        REQUIRE(end_of(child) == 0);
    }
    free(of_parent);
}

static const struct Case cases[] = {
    {"ThreadsForkWhileOthersAllocate", threads_fork_while_others_allocate},
    {"ChildStartsThreadsAndExits", child_starts_threads_and_exits},
    {"EveryGenerationForksWithBusyThreads", every_generation_forks_with_busy_threads},
    {"CloneWithoutForkHandlers", clone_without_fork_handlers},
};

int main(int count, char **arguments) { return RUN_CASE(count, arguments, cases); }
