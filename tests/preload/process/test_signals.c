// SPDX-License-Identifier: Apache-2.0
// Signals are the program's: what it blocks waits for it, what it handles interrupts it, malloc included.
#define _GNU_SOURCE
#include <malloc.h>
#include <poll.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "tests/preload/cases.h"

static void grow(void)
{
    char *large = malloc(100 << 20);    // beyond PGHOT_START_MIN
    REQUIRE(large != NULL);
    large[0] = 1;
    free(large);
    allocate_some(1, 1000);
}

static void handle(int signal_number, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    REQUIRE(sigaction(signal_number, &action, NULL) == 0);
}

static sigset_t one_signal(int signal_number)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal_number);
    return set;
}

// Their default action ends the process, except SIGCHLD's: one thread that does not block them is enough.
static void blocked_signals_wait_for_the_program(void)
{
    grow();
    const int signals[] = {SIGHUP,  SIGINT, SIGQUIT, SIGUSR1,   SIGUSR2,  SIGALRM, SIGTERM,
                           SIGCHLD, SIGIO,  SIGPROF, SIGVTALRM, SIGRTMIN, SIGRTMAX};
    sigset_t all;
    sigemptyset(&all);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) sigaddset(&all, signals[i]);
    REQUIRE(pthread_sigmask(SIG_BLOCK, &all, NULL) == 0);
    struct Busy busy = start_busy(2);    // they inherit the mask
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        const sigset_t one = one_signal(signals[i]);
        const struct timespec limit = {20, 0};
        for (int round = 0; round < 20; round++) {
            REQUIRE(kill(getpid(), signals[i]) == 0);
            REQUIRE(sigtimedwait(&one, NULL, &limit) == signals[i]);
        }
        int taken = 0;
        REQUIRE(kill(getpid(), signals[i]) == 0 && sigwait(&one, &taken) == 0 && taken == signals[i]);
        const int descriptor = signalfd(-1, &one, 0);
        REQUIRE(kill(getpid(), signals[i]) == 0);
        struct signalfd_siginfo info;
        REQUIRE(read(descriptor, &info, sizeof info) == sizeof info && info.ssi_signo == (unsigned)signals[i]);
        close(descriptor);
    }
    end_busy(&busy);
}

static pid_t main_thread;
static volatile sig_atomic_t in_main, elsewhere;

static void count_where(int signal_number, siginfo_t *info, void *context)
{
    (void)signal_number, (void)info, (void)context;
    if (syscall(SYS_gettid) == main_thread)
        in_main++;
    else
        elsewhere++;
}

static void alarms_interrupt_the_only_thread(void)
{
    main_thread = (pid_t)syscall(SYS_gettid);
    grow();
    handle(SIGALRM, count_where, 0);
    for (int i = 0; i < 20; i++) {
        const struct itimerval soon = {{0, 0}, {0, 5000}};
        setitimer(ITIMER_REAL, &soon, NULL);
        REQUIRE(poll(NULL, 0, 20000) == -1 && errno == EINTR);
    }
    REQUIRE(in_main == 20 && elsewhere == 0);
}

static void profiling_timer_interrupts_malloc(void)
{
    main_thread = (pid_t)syscall(SYS_gettid);
    handle(SIGPROF, count_where, SA_RESTART);
    const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    struct Busy busy = start_busy(1);
    setitimer(ITIMER_PROF, &often, NULL);
    struct Blocks blocks = {.state = 9};
    while (in_main < 50) replace_block(&blocks);
    setitimer(ITIMER_PROF, &never, NULL);
    free_blocks(&blocks);
    end_busy(&busy);
}

static void *signal_until_handled_often(void *target)
{
    while (in_main < 1000) pthread_kill(*(pthread_t *)target, SIGUSR1);
    return NULL;
}

static void handlers_interrupt_malloc_anywhere(void)
{
    main_thread = (pid_t)syscall(SYS_gettid);
    handle(SIGUSR1, count_where, SA_RESTART);
    pthread_t self = pthread_self();
    const pthread_t sender = start_thread(signal_until_handled_often, &self);
    struct Blocks blocks = {.state = 4};
    while (pthread_tryjoin_np(sender, NULL) == EBUSY) replace_block(&blocks);
    free_blocks(&blocks);
}

static void children_are_seen_and_reaped(void)
{
    main_thread = (pid_t)syscall(SYS_gettid);
    grow();
    handle(SIGCHLD, count_where, 0);
    sigset_t blocked = one_signal(SIGCHLD), before;
    sigprocmask(SIG_BLOCK, &blocked, &before);
    for (int i = 0; i < 100; i++) {
        const pid_t child = fork_child();
        if (child == 0) _exit(i);
        const int seen = in_main;
        while (in_main == seen) sigsuspend(&before);
        REQUIRE(end_of(child) == i);
    }
    REQUIRE(elsewhere == 0);
    REQUIRE(waitpid(-1, NULL, 0) == -1 && errno == ECHILD);
}

// --- pages that the program protects and a handler opens: collectors, checkpointing, shared memory in software ---

enum { kPage = 4096, kPages = 1024 };
static char *volatile barrier;
static volatile sig_atomic_t faults;

static void open_page(int signal_number, siginfo_t *info, void *context)
{
    (void)signal_number, (void)context;
    const uintptr_t at = (uintptr_t)info->si_addr, begin = (uintptr_t)barrier;
    if (at < begin || at >= begin + kPages * kPage) _exit(40);    // not the program's fault
    faults++;
    mprotect((char *)info->si_addr - at % kPage, kPage, PROT_READ | PROT_WRITE);
}

static void fill_pages(void)
{
    for (int i = 0; i < kPages; i++) memset(barrier + i * kPage, i % 251, kPage);
}

static void write_barriers_on_the_heap_hold(void)
{
    static char alternate[65536];
    const stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    REQUIRE(sigaltstack(&stack, NULL) == 0);
    handle(SIGSEGV, open_page, SA_ONSTACK);
    barrier = memalign(kPage, kPages * kPage);
    fill_pages();
    for (int round = 0; round < 10; round++) {
        faults = 0;
        REQUIRE(mprotect(barrier, kPages * kPage, round % 2 == 0 ? PROT_READ : PROT_NONE) == 0);
        allocate_some((unsigned)round, 500);    // neighbours come and go
        for (int i = 0; i < kPages; i++) barrier[i * kPage + 8]++;
        REQUIRE(faults == kPages);
        for (int i = 0; i < kPages; i++)
            REQUIRE(barrier[i * kPage + 9] == (char)(i % 251) && barrier[i * kPage + 8] == (char)(i % 251 + round + 1));
    }
    free(barrier);
}

// The block is moved while pages of it are protected, some of them against reading: the allocator may copy, the
// handler opens what it meets.
static void protected_blocks_can_grow(void)
{
    handle(SIGSEGV, open_page, 0);
    for (int round = 0; round < 10; round++) {
        barrier = memalign(kPage, kPages * kPage);
        fill_pages();
        for (int i = round; i < kPages; i += 7)
            mprotect(barrier + i * kPage, kPage, i % 2 == 0 ? PROT_READ : PROT_NONE);
        char *grown = realloc(barrier, (size_t)kPages * kPage * 5);
        REQUIRE(grown != NULL);
        barrier = grown;
        for (int i = 0; i < kPages; i++) {
            grown[i * kPage]++;    // a page that moved with its protection faults here
            REQUIRE(grown[i * kPage] == (char)(i % 251 + 1) && grown[i * kPage + 4095] == (char)(i % 251));
        }
        memset(grown + (size_t)kPages * kPage, 1, (size_t)kPages * kPage * 4);
        mprotect(grown, kPages * kPage, PROT_READ | PROT_WRITE);
        free(grown);
    }
}

static const struct Case cases[] = {
    {"BlockedSignalsWaitForTheProgram", blocked_signals_wait_for_the_program},
    {"AlarmsInterruptTheOnlyThread", alarms_interrupt_the_only_thread},
    {"ProfilingTimerInterruptsMalloc", profiling_timer_interrupts_malloc},
    {"HandlersInterruptMallocAnywhere", handlers_interrupt_malloc_anywhere},
    {"ChildrenAreSeenAndReaped", children_are_seen_and_reaped},
    {"WriteBarriersOnTheHeapHold", write_barriers_on_the_heap_hold},
    {"ProtectedBlocksCanGrow", protected_blocks_can_grow},
};

int main(int count, char **arguments) { return RUN_CASE(count, arguments, cases); }
