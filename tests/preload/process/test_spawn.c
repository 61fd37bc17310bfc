// SPDX-License-Identifier: Apache-2.0
// Children that run in the parent's memory until they exec, and the C library's ways to start programs.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/syscall.h>

#include "tests/preload/cases.h"

extern char **environ;

enum { kRounds = 100 };
static char *const kTrue[] = {(char[]){"true"}, NULL};
static char *const kMissing[] = {(char[]){"missing"}, NULL};

static char *left_over;    // by a child in the parent's memory: it belongs to the parent then

// Allocates while the parent sleeps.
static int leave_something_over(void *status)
{
    free(malloc(40));
    free(malloc(4000000));
    left_over = malloc(100000);
    left_over[99999] = 3;
    return *(int *)status;
}

static void take_what_is_left_over(void)
{
    REQUIRE(left_over != NULL && left_over[99999] == 3);
    free(left_over);
    left_over = NULL;
}

static int end_of_vfork_child(const char *program, char *const *arguments)
{
    const pid_t child = vfork();
    REQUIRE(child >= 0);
    if (child == 0) {
        int unused = 0;
        leave_something_over(&unused);
        execv(program, arguments);
        _exit(errno == ENOENT ? 17 : 18);
    }
    return end_of(child);
}

static void vfork_child_allocates(void)
{
    struct Busy busy = start_busy(2);
    for (int i = 0; i < kRounds; i++) {
        REQUIRE(end_of_vfork_child("/bin/true", kTrue) == 0);
        take_what_is_left_over();
        REQUIRE(end_of_vfork_child("/nonexistent/program", kMissing) == 17);
        take_what_is_left_over();
    }
    end_busy(&busy);
}

static void cloned_child_shares_memory(void)
{
    struct Busy busy = start_busy(2);
    enum { kStackBytes = 65536 };
    char *stack = malloc(kStackBytes);
    for (int i = 0; i < kRounds; i++) {
        int status = 9;
        const pid_t child = clone(leave_something_over, stack + kStackBytes, CLONE_VM | CLONE_VFORK | SIGCHLD, &status);
        REQUIRE(child >= 0);
        REQUIRE(end_of(child) == 9);
        take_what_is_left_over();
    }
    free(stack);
    end_busy(&busy);
}

static void posix_spawn_starts_and_says_why_not(void)
{
    struct Busy busy = start_busy(4);
    char *bare[] = {(char[]){"PATH=/usr/bin:/bin"}, NULL};
    for (int i = 0; i < kRounds; i++) {
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
        posix_spawn_file_actions_addclose(&actions, 0);
        pid_t child = -1;
        REQUIRE(posix_spawnp(&child, "true", &actions, NULL, kTrue, i % 2 == 0 ? environ : bare) == 0);
        posix_spawn_file_actions_destroy(&actions);
        REQUIRE(end_of(child) == 0);
        REQUIRE(posix_spawn(&child, "/nonexistent/program", NULL, NULL, kMissing, environ) == ENOENT);
    }
    end_busy(&busy);
}

static void *use_system_and_popen(void *unused)
{
    for (int i = 0; i < 25; i++) {
        const int status = system("exit 3");
        REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 3);
        FILE *pipe_end = popen("echo one; echo two", "r");
        REQUIRE(pipe_end != NULL);
        char text[64] = "";
        REQUIRE(fread(text, 1, sizeof text - 1, pipe_end) == 8 && strcmp(text, "one\ntwo\n") == 0);
        REQUIRE(pclose(pipe_end) == 0);
    }
    return unused;
}

static void system_and_popen_from_two_threads(void)
{
    struct Busy busy = start_busy(1);
    const pthread_t other = start_thread(use_system_and_popen, NULL);
    use_system_and_popen(NULL);
    pthread_join(other, NULL);
    end_busy(&busy);
}

// Wrong, and done: exit() in the child runs the destructors of every library in the parent's memory.
static int end_of_vfork_child_that_exits(void)
{
    const pid_t child = vfork();
    REQUIRE(child >= 0);
    if (child == 0) exit(5);
    return end_of(child);
}

static void vfork_child_leaves_through_exit(void)
{
    for (unsigned i = 0; i < kRounds; i++) {
        REQUIRE(end_of_vfork_child_that_exits() == 5);
        allocate_some(i, 50);
    }
}

static void *exec_from_here(void *program)
{
    char *arguments[] = {program, (char[]){"IsPreloadedAndFresh"}, NULL};
    execv(program, arguments);
    _exit(30);
}

static void is_preloaded_and_fresh(void)
{
    allocate_some(1, 1000);
    _exit(6);
}

static char *own_program;

// The kernel ends all other threads, wherever they are, and the program begins anew under the library.
static void exec_from_a_thread(void)
{
    for (int i = 0; i < 50; i++) {
        const pid_t child = fork_child();
        if (child == 0) {
            start_busy(3);
            start_thread(exec_from_here, own_program);
            for (;;) allocate_some(2, 100);
        }
        REQUIRE(end_of(child) == 6);
    }
}

static const struct Case cases[] = {
    {"VforkChildAllocates", vfork_child_allocates},
    {"ClonedChildSharesMemory", cloned_child_shares_memory},
    {"PosixSpawnStartsAndSaysWhyNot", posix_spawn_starts_and_says_why_not},
    {"SystemAndPopenFromTwoThreads", system_and_popen_from_two_threads},
    {"VforkChildLeavesThroughExit", vfork_child_leaves_through_exit},
    {"ExecFromAThread", exec_from_a_thread},
    {"IsPreloadedAndFresh", is_preloaded_and_fresh},    // the program that ExecFromAThread starts
};

int main(int count, char **arguments)
{
    own_program = arguments[0];
    return RUN_CASE(count, arguments, cases);
}
