// SPDX-License-Identifier: Apache-2.0
// A process that is stopped, continued and traced goes on as if nothing had been, and its tracer sees a process like
// any other: the signals that it expects, one thread.
#define _GNU_SOURCE
#include <sys/ptrace.h>
#include <time.h>

#include "tests/preload/cases.h"

static int wait_status(pid_t child, int options)
{
    int status = 0;
    REQUIRE(waitpid(child, &status, options | __WALL) == child);
    return status;
}

static void stop_and_go(pid_t child)
{
    REQUIRE(kill(child, SIGSTOP) == 0);
    const int stopped = wait_status(child, WUNTRACED);
    REQUIRE(WIFSTOPPED(stopped) && WSTOPSIG(stopped) == SIGSTOP);
    REQUIRE(kill(child, SIGCONT) == 0);
    REQUIRE(WIFCONTINUED(wait_status(child, WCONTINUED)));
}

static volatile sig_atomic_t asked_to_end;
static void note_end(int signal_number) { asked_to_end = signal_number; }

static pid_t start_busy_child(void)
{
    signal(SIGTERM, note_end);
    const pid_t child = fork_child();
    if (child != 0) return child;
    struct Busy busy = start_busy(2);
    for (unsigned i = 0; !asked_to_end; i++) allocate_some(i, 50);
    end_busy(&busy);
    exit(4);
}

static void require_good_end(pid_t child)
{
    REQUIRE(kill(child, SIGTERM) == 0);
    REQUIRE(end_of(child) == 4);
}

static void stopped_and_continued_anywhere(void)
{
    const pid_t child = start_busy_child();
    for (int i = 0; i < 100; i++) {
        const struct timespec pause_time = {0, 100000L * (i % 7)};
        nanosleep(&pause_time, NULL);
        stop_and_go(child);
    }
    require_good_end(child);
}

static char *own_program;

static pid_t start_traced(const char *case_name)
{
    const pid_t child = fork_child();
    if (child != 0) return child;
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(kSkipped);
    execl(own_program, own_program, case_name, (char *)NULL);
    _exit(30);
}

// After the stop at exec: every system call and signal of a program with one thread, until it ends.
static int trace_to_the_end(pid_t child, int *system_call_stops)
{
    const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
    REQUIRE(ptrace(PTRACE_SETOPTIONS, child, NULL, options) == 0);
    for (int signal_number = 0;;) {
        REQUIRE(ptrace(PTRACE_SYSCALL, child, NULL, (long)signal_number) == 0);
        const int status = wait_status(child, 0);
        if (WIFEXITED(status)) return WEXITSTATUS(status);
        if (WIFSIGNALED(status)) return -WTERMSIG(status);
        REQUIRE(status >> 8 != (SIGTRAP | PTRACE_EVENT_CLONE << 8));    // a thread of ours
        const int stop = WSTOPSIG(status);
        signal_number = stop & 0x80 ? 0 : stop;
        *system_call_stops += (stop & 0x80) != 0;
    }
}

static void allocate_and_die_of_a_signal(void)
{
    allocate_some(1, 3000);
    raise(SIGUSR1);
}

static void every_system_call_can_be_traced(void)
{
    const pid_t child = start_traced("AllocateAndDieOfASignal");
    const int first = wait_status(child, 0);
    if (WIFEXITED(first) && WEXITSTATUS(first) == kSkipped) SKIP("ptrace is not permitted here");
    REQUIRE(WIFSTOPPED(first) && WSTOPSIG(first) == SIGTRAP);
    int system_call_stops = 0;
    REQUIRE(trace_to_the_end(child, &system_call_stops) == -SIGUSR1);
    REQUIRE(system_call_stops > 20);
}

// As debuggers and crash handlers do: attach to a running process with threads, look, let go.
static void attached_and_left_alone_again(void)
{
    const pid_t child = start_busy_child();
    for (int i = 0; i < 50; i++) {
        if (ptrace(PTRACE_SEIZE, child, NULL, NULL) != 0) {
            REQUIRE(errno == EPERM);
            SKIP("ptrace is not permitted here");
        }
        REQUIRE(ptrace(PTRACE_INTERRUPT, child, NULL, NULL) == 0);
        REQUIRE(WIFSTOPPED(wait_status(child, 0)));
        REQUIRE(ptrace(PTRACE_DETACH, child, NULL, NULL) == 0);
    }
    require_good_end(child);
}

static const struct Case cases[] = {
    {"StoppedAndContinuedAnywhere", stopped_and_continued_anywhere},
    {"EverySystemCallCanBeTraced", every_system_call_can_be_traced},
    {"AttachedAndLeftAloneAgain", attached_and_left_alone_again},
    {"AllocateAndDieOfASignal", allocate_and_die_of_a_signal},    // the program that is traced
};

int main(int count, char **arguments)
{
    own_program = arguments[0];
    return RUN_CASE(count, arguments, cases);
}
