// SPDX-License-Identifier: Apache-2.0
// Threads come and go, in great numbers and with little room, and leave nothing behind.
#define _GNU_SOURCE
#include <limits.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "tests/preload/cases.h"

static size_t resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    size_t pages = 0;
    REQUIRE(file != NULL && fscanf(file, "%*u %zu", &pages) == 1);
    fclose(file);
    return pages * 4096;
}

// --- churn: every thread frees blocks that another one allocated, and leaves some ---

enum { kShortThreads = 20000, kAtATime = 8, kHandedOn = 32, kSizes = 4 };
static char *handed_on[kAtATime][kHandedOn];

static void *live_shortly(void *place)
{
    static const size_t sizes[kSizes] = {24, 700, 5000, 40000};
    char **blocks = place;
    for (int i = 0; i < kHandedOn; i++) {
        free(blocks[i]);
        blocks[i] = malloc(sizes[i % kSizes]);
        blocks[i][0] = 1;
    }
    return NULL;
}

// Alive are 8 x 32 blocks of 12 KiB on average: 3 MiB. What a thread leaves in its cache must go back when it ends,
// else 20,000 of them leave gigabytes.
static void short_threads_leave_nothing_behind(void)
{
    pthread_t threads[kAtATime];
    for (int round = 0; round < kShortThreads / kAtATime; round++) {
        for (int i = 0; i < kAtATime; i++) threads[i] = start_thread(live_shortly, handed_on[(i + round) % kAtATime]);
        for (int i = 0; i < kAtATime; i++) pthread_join(threads[i], NULL);
    }
    const size_t resident = resident_bytes();
    if (resident > 32 << 20) fprintf(stderr, "%zu MiB resident\n", resident >> 20);
    REQUIRE(resident <= 32 << 20);
}

// --- a thousand at once ---

enum { kManyThreads = 1000 };
static pthread_barrier_t all_there;

static void *allocate_together(void *seed)
{
    struct Blocks blocks = {.state = (unsigned)(size_t)seed};
    for (int i = 0; i < 20; i++) replace_block(&blocks);
    pthread_barrier_wait(&all_there);    // everybody has a cache and blocks
    for (int i = 0; i < 20; i++) replace_block(&blocks);
    free_blocks(&blocks);
    return NULL;
}

static void a_thousand_threads_allocate_at_once(void)
{
    static pthread_t threads[kManyThreads];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 128 << 10);
    pthread_barrier_init(&all_there, NULL, kManyThreads);
    for (size_t i = 0; i < kManyThreads; i++) {
        const int error = pthread_create(&threads[i], &attributes, allocate_together, (void *)i);
        if (error == EAGAIN) SKIP("a process gets no thousand threads here");
        REQUIRE(error == 0);
    }
    for (int i = 0; i < kManyThreads; i++) pthread_join(threads[i], NULL);
}

// --- little room ---

static void allocate_all_sizes(void)
{
    char *kept[48];
    for (int i = 0; i < 48; i++) {
        const size_t bytes = (size_t)1 << i % 24;
        switch (i % 4) {
            case 0: kept[i] = malloc(bytes); break;
            case 1: kept[i] = calloc(1, bytes); break;
            case 2: kept[i] = aligned_alloc(64, (bytes + 63) / 64 * 64); break;
            default: kept[i] = realloc(malloc(10), bytes); break;
        }
        REQUIRE(kept[i] != NULL);
        kept[i][bytes - 1] = 1;
    }
    for (int i = 0; i < 48; i += 2) kept[i] = realloc(kept[i], 3000);
    for (int i = 0; i < 48; i++) free(kept[i]);
    free(malloc(80 << 20));    // beyond PGHOT_START_MIN
}

static void *allocate_in_little_room(void *unused)
{
    allocate_all_sizes();
    return unused;
}

// The smallest stack that the C library lets a program ask for, less the static TLS that it takes out of it. The
// thread's first allocation builds its cache, in the first thread the arena too.
static void smallest_stacks_are_enough(void)
{
    const long needed = sysconf(_SC_THREAD_STACK_MIN);
    const size_t sizes[] = {needed > 0 ? (size_t)needed : PTHREAD_STACK_MIN, 32768, 65536};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        REQUIRE(pthread_attr_setstacksize(&attributes, sizes[s]) == 0);
        for (int i = 0; i < 30; i++) {
            pthread_t thread;
            REQUIRE(pthread_create(&thread, &attributes, allocate_in_little_room, NULL) == 0);
            pthread_join(thread, NULL);
        }
    }
}

// Coroutines of 8 KiB between forbidden pages.
enum { kCoroutineBytes = 8192, kGuardBytes = 4096 };
static ucontext_t scheduler, coroutine;

static void *run_coroutines(void *unused)
{
    for (int i = 0; i < 20; i++) {
        char *stack = mmap(NULL, kCoroutineBytes + 2 * kGuardBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(stack != MAP_FAILED);
        REQUIRE(mprotect(stack + kGuardBytes, kCoroutineBytes, PROT_READ | PROT_WRITE) == 0);
        getcontext(&coroutine);
        coroutine.uc_stack.ss_sp = stack + kGuardBytes;
        coroutine.uc_stack.ss_size = kCoroutineBytes;
        coroutine.uc_link = &scheduler;
        makecontext(&coroutine, allocate_all_sizes, 0);
        swapcontext(&scheduler, &coroutine);
        munmap(stack, kCoroutineBytes + 2 * kGuardBytes);
    }
    return unused;
}

// In a fresh thread too: its first allocation is a coroutine's.
static void coroutines_allocate_on_their_small_stacks(void)
{
    for (int i = 0; i < 5; i++) pthread_join(start_thread(run_coroutines, NULL), NULL);
    run_coroutines(NULL);
}

// --- cancelled in the middle ---

static void *allocate_until_cancelled(void *unused)
{
    for (unsigned i = 0;; i++) {
        free(realloc(malloc(i % 3000), i % 70000 + 1));
        pthread_testcancel();
    }
    return unused;
}

// malloc is no cancellation point and holds no lock when the thread goes.
static void cancelled_threads_leave_no_lock(void)
{
    for (int i = 0; i < 300; i++) {
        const pthread_t thread = start_thread(allocate_until_cancelled, NULL);
        allocate_some((unsigned)i, 20);
        REQUIRE(pthread_cancel(thread) == 0);
        void *result = NULL;
        REQUIRE(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    }
    allocate_some(1, 1000);
}

static const struct Case cases[] = {
    {"ShortThreadsLeaveNothingBehind", short_threads_leave_nothing_behind},
    {"AThousandThreadsAllocateAtOnce", a_thousand_threads_allocate_at_once},
    {"SmallestStacksAreEnough", smallest_stacks_are_enough},
    {"CoroutinesAllocateOnTheirSmallStacks", coroutines_allocate_on_their_small_stacks},
    {"CancelledThreadsLeaveNoLock", cancelled_threads_leave_no_lock},
};

int main(int count, char **arguments) { return RUN_CASE(count, arguments, cases); }
