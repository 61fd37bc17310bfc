// SPDX-License-Identifier: Apache-2.0
// A process ends in the way and with the status that the program chose, from any thread, while others allocate.
#define _GNU_SOURCE
#include <sys/resource.h>

#include "tests/preload/cases.h"

enum { kExits = 1000 };

static void allocate_a_little(void)
{
    free(malloc(100));
    free(realloc(malloc(70000), 3000000));
}

__attribute__((destructor)) static void after_main(void) { allocate_a_little(); }

static void leave(void (*end)(int), int status)
{
    atexit(allocate_a_little);
    end(status);
}

static void exit_7(void) { leave(exit, 7); }
static void hard_exit_8(void) { leave(_exit, 8); }
static void quick_exit_9(void)
{
    at_quick_exit(allocate_a_little);
    leave(quick_exit, 9);
}
static void abort_here(void)
{
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    abort();
}
static void die_of_a_signal(void) { raise(SIGTERM); }

static void *run_in_thread(void *end)
{
    (*(void (**)(void))end)();
    return NULL;
}

static void end_from_a_thread(void (*end)(void))
{
    start_busy(2);
    start_thread(run_in_thread, &end);
    for (;;) pause();
}

static void exit_7_from_a_thread(void) { end_from_a_thread(exit_7); }
static void hard_exit_8_from_a_thread(void) { end_from_a_thread(hard_exit_8); }
static void quick_exit_9_from_a_thread(void) { end_from_a_thread(quick_exit_9); }
static void abort_from_a_thread(void) { end_from_a_thread(abort_here); }

static void the_status_is_the_programs(void)
{
    for (int i = 0; i < 20; i++) {
        REQUIRE(end_in_child(exit_7) == 7);
        REQUIRE(end_in_child(hard_exit_8) == 8);
        REQUIRE(end_in_child(quick_exit_9) == 9);
        REQUIRE(end_in_child(abort_here) == -SIGABRT);
        REQUIRE(end_in_child(die_of_a_signal) == -SIGTERM);
    }
}

static void the_status_is_that_of_the_ending_thread(void)
{
    for (int i = 0; i < 20; i++) {
        REQUIRE(end_in_child(exit_7_from_a_thread) == 7);
        REQUIRE(end_in_child(hard_exit_8_from_a_thread) == 8);
        REQUIRE(end_in_child(quick_exit_9_from_a_thread) == 9);
        REQUIRE(end_in_child(abort_from_a_thread) == -SIGABRT);
    }
}

static void exit_under_busy_threads(void)
{
    start_busy(2);
    allocate_some(3, 20);
    exit_7();
}

static void exit_while_others_allocate(void)
{
    for (int i = 0; i < kExits; i++) REQUIRE(end_in_child(exit_under_busy_threads) == 7);
}

static int report_end[2];

static void write_in_exit_handler(void) { REQUIRE(write(report_end[1], "e", 1) == 1); }

static void *outlive_main(void *main_thread)
{
    pthread_join(*(pthread_t *)main_thread, NULL);
    allocate_some(4, 100);
    atexit(write_in_exit_handler);
    fputs("buffered", fdopen(report_end[1], "w"));
    return NULL;
}

static void leave_main_by_pthread_exit(void)
{
    static pthread_t main_thread;
    main_thread = pthread_self();
    start_thread(outlive_main, &main_thread);
    free(malloc(100000));
    pthread_exit(NULL);
}

// The last thread runs exit(): status 0, the handlers, the buffered output.
static void main_leaves_by_pthread_exit(void)
{
    for (int i = 0; i < 100; i++) {
        REQUIRE(pipe(report_end) == 0);
        REQUIRE(end_in_child(leave_main_by_pthread_exit) == 0);
        close(report_end[1]);
        char text[32] = "";
        REQUIRE(read(report_end[0], text, sizeof text - 1) == 9 && strcmp(text, "ebuffered") == 0);
        close(report_end[0]);
    }
}

static void *allocate_for_ever(void *unused)
{
    for (unsigned i = 0;; i++) allocate_some(i, 100);
    return unused;
}

static void leave_detached_threads_behind(void)
{
    for (int i = 0; i < 3; i++) pthread_detach(start_thread(allocate_for_ever, NULL));
    allocate_some(5, 100);
}

// A body that returns is a main that returns.
static void main_returns_over_detached_threads(void)
{
    for (int i = 0; i < 100; i++) REQUIRE(end_in_child(leave_detached_threads_behind) == 0);
}

static int handlers_run;

static void handler_that_adds_another(void)
{
    allocate_a_little();
    if (++handlers_run < 5) atexit(handler_that_adds_another);
}

static void free_at_exit(int status, void *block)
{
    REQUIRE(status == 4);
    free(block);
}

static void end_with_handlers_run(void) { _exit(handlers_run); }    // registered first, runs last

static void exit_with_handlers_that_grow(void)
{
    atexit(end_with_handlers_run);
    atexit(handler_that_adds_another);
    for (int i = 0; i < 200; i++) atexit(allocate_a_little);    // the C library allocates their list
    on_exit(free_at_exit, malloc(100));
    exit(4);
}

static void exit_handlers_allocate_and_add_handlers(void)
{
    for (int i = 0; i < 20; i++) REQUIRE(end_in_child(exit_with_handlers_that_grow) == 5);
}

static const struct Case cases[] = {
    {"TheStatusIsTheProgramsOwn", the_status_is_the_programs},
    {"TheStatusIsThatOfTheEndingThread", the_status_is_that_of_the_ending_thread},
    {"ExitWhileOthersAllocate", exit_while_others_allocate},
    {"MainLeavesByPthreadExit", main_leaves_by_pthread_exit},
    {"MainReturnsOverDetachedThreads", main_returns_over_detached_threads},
    {"ExitHandlersAllocateAndAddHandlers", exit_handlers_allocate_and_add_handlers},
};

int main(int count, char **arguments) { return RUN_CASE(count, arguments, cases); }
