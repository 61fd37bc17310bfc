/* SPDX-License-Identifier: Apache-2.0 */
/* usage: record_calls PROGRAM ARGUMENTS...
 * Runs PROGRAM without output and prints the number of each kind of system call that it, its threads and its children
 * made from exec on. Status 77 where programs cannot be traced. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kKinds = 1024, kSyscallStop = SIGTRAP | 0x80, kNotTraceable = 77 };
static int seen[kKinds];

static void start(char **command)
{
    const int nowhere = open("/dev/null", O_RDWR);
    for (int i = 0; i < 3; i++) dup2(nowhere, i);
    if (nowhere > 2) close(nowhere);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL)) _exit(kNotTraceable);
    raise(SIGSTOP);
    execvp(command[0], command);
    _exit(127);
}

static void record(pid_t process)
{
    struct __ptrace_syscall_info info;
    const long bytes = ptrace(PTRACE_GET_SYSCALL_INFO, process, sizeof info, &info);
    if (bytes <= 0 || info.op != PTRACE_SYSCALL_INFO_ENTRY) return;
    if (info.entry.nr < kKinds) seen[info.entry.nr] = 1;
}

/* Signals of ptrace itself (stops, events) are not handed on; a real one is. */
static int signal_to_hand_on(int status)
{
    const int signal = WSTOPSIG(status);
    return signal == kSyscallStop || signal == SIGTRAP || signal == SIGSTOP ? 0 : signal;
}

static void follow(pid_t first)
{
    int status = 0;
    int in_program = 0;    /* exec was seen */
    for (pid_t process; (process = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR;) {
        if (process <= 0 || !WIFSTOPPED(status)) continue;
        if (process == first && status >> 8 == (SIGTRAP | (PTRACE_EVENT_EXEC << 8))) in_program = 1;
        if (in_program && WSTOPSIG(status) == kSyscallStop) record(process);
        ptrace(PTRACE_SYSCALL, process, NULL, (void *)(long)signal_to_hand_on(status));
    }
}

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    const pid_t child = fork();
    if (child == 0) start(argv + 1);
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return kNotTraceable;
    const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                         PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
    if (ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)options)) return kNotTraceable;
    ptrace(PTRACE_SYSCALL, child, NULL, NULL);
    follow(child);
    for (int kind = 0; kind < kKinds; kind++)
        if (seen[kind]) printf("%d\n", kind);
    return 0;
}
