// SPDX-License-Identifier: Apache-2.0
// Destructors of thread-specific data run after the allocator's own for that thread: they allocate, free blocks of
// others and arm themselves again, in threads and in main.
#define _GNU_SOURCE
#include "tests/preload/cases.h"

enum { kKeys = 8, kThreads = 500 };
static pthread_key_t keys[kKeys];
static int destructors_run;
static char *from_the_dead;    // the last thread's last block
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static char *block(size_t bytes)
{
    char *made = malloc(bytes);
    REQUIRE(made != NULL);
    made[0] = made[bytes - 1] = 'b';
    return made;
}

static void replace_last_block(char *mine)
{
    pthread_mutex_lock(&lock);
    char *theirs = from_the_dead;
    from_the_dead = mine;
    destructors_run++;
    pthread_mutex_unlock(&lock);
    free(theirs);
}

static void allocate_and_arm_again(void *value)
{
    static __thread int rounds[kKeys];
    char *text = value;
    const int key = text[1];
    REQUIRE(text[0] == 'b' && key < kKeys);
    free(text);
    allocate_some((unsigned)key, 20);
    replace_last_block(block(60000));
    // The C library makes PTHREAD_DESTRUCTOR_ITERATIONS (4) rounds; what is armed in the last one is lost.
    if (++rounds[key] == 4) return;
    char *again = block(50000);
    again[1] = (char)key;
    pthread_setspecific(keys[key], again);
}

static void arm_all(void)
{
    for (int i = 0; i < kKeys; i++) {
        char *value = block(1000);
        value[1] = (char)i;
        pthread_setspecific(keys[i], value);
    }
}

static void make_keys(void)
{
    for (int i = 0; i < kKeys; i++) REQUIRE(pthread_key_create(&keys[i], allocate_and_arm_again) == 0);
}

static void *arm_and_end(void *unused)
{
    arm_all();
    return unused;
}

static void destructors_that_arm_again_run_four_times(void)
{
    make_keys();
    for (int i = 0; i < kThreads; i++) pthread_join(start_thread(arm_and_end, NULL), NULL);
    REQUIRE(destructors_run == kThreads * kKeys * 4);
    REQUIRE(from_the_dead[59999] == 'b');
}

// A thread that has never allocated before its destructor does.
static void allocate_first(void *unused)
{
    (void)unused;
    replace_last_block(block(300));
    replace_last_block(block(3000000));
}

static void *end_without_allocation(void *unused)
{
    static char mark;
    pthread_setspecific(keys[0], &mark);
    return unused;
}

static void a_destructor_allocates_first_in_its_thread(void)
{
    REQUIRE(pthread_key_create(&keys[0], allocate_first) == 0);
    for (int i = 0; i < kThreads; i++) pthread_join(start_thread(end_without_allocation, NULL), NULL);
    REQUIRE(destructors_run == kThreads * 2);
}

static void check_destructors_of_main(void) { _exit(destructors_run == kKeys * 4 ? 5 : 1); }

static void leave_main_armed(void)
{
    make_keys();
    arm_all();
    atexit(check_destructors_of_main);
    pthread_exit(NULL);
}

// main's destructors run when it leaves by pthread_exit, as the last thread then exit handlers too.
static void destructors_of_main_allocate(void) { REQUIRE(end_in_child(leave_main_armed) == 5); }

static void *hold_and_fork(void *unused)
{
    arm_all();
    const pid_t child = fork_child();
    if (child == 0) pthread_exit(NULL);    // the only thread of the child: its destructors, then exit(0)
    REQUIRE(end_of(child) == 0);
    return unused;
}

static void destructors_run_in_a_forked_thread(void)
{
    make_keys();
    struct Busy busy = start_busy(2);
    for (int i = 0; i < 30; i++) pthread_join(start_thread(hold_and_fork, NULL), NULL);
    end_busy(&busy);
}

static const struct Case cases[] = {
    {"DestructorsThatArmAgainRunFourTimes", destructors_that_arm_again_run_four_times},
    {"ADestructorAllocatesFirstInItsThread", a_destructor_allocates_first_in_its_thread},
    {"DestructorsOfMainAllocate", destructors_of_main_allocate},
    {"DestructorsRunInAForkedThread", destructors_run_in_a_forked_thread},
};

int main(int count, char **arguments) { return RUN_CASE(count, arguments, cases); }
