// SPDX-License-Identifier: Apache-2.0
// Runs a command and writes what it and all its descendants cost, as JSON, to a file.
//   measure FILE TIMES [NAME=VALUE...] -- COMMAND [ARGUMENT...]
// The command gets the settings, this program does not: it stays as it is whatever is preloaded, and is small, because
// the memory of the process that starts a command counts as that command's (ru_maxrss survives exec).
// Exit status: that of the command that failed first, 128 + N for signal N, 126 when it cannot be run.
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char** environ;

static double seconds(struct timeval time) { return (double)time.tv_sec + (double)time.tv_usec / 1e6; }

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

// A new environment: ours and the settings. Not putenv(), which would change what this program itself runs with.
static char** environment_with(char** settings, size_t count) {
    size_t own = 0;
    while (environ[own] != NULL) ++own;
    char** all = malloc((own + count + 1) * sizeof(char*));
    if (all == NULL) exit(126);
    memcpy(all, settings, count * sizeof(char*));
    memcpy(all + count, environ, (own + 1) * sizeof(char*));
    return all;
}

static int run(char** command, char** environment) {
    pid_t child;
    int status;
    if (posix_spawnp(&child, command[0], NULL, NULL, command, environment) != 0) return 126;
    if (waitpid(child, &status, 0) != child) return 126;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int write_cost(const char* file, double wall) {
    struct rusage children, self;
    getrusage(RUSAGE_CHILDREN, &children);
    getrusage(RUSAGE_SELF, &self);    // starting a process is work of the one that starts it
    const double user = seconds(children.ru_utime) + seconds(self.ru_utime);
    const double system = seconds(children.ru_stime) + seconds(self.ru_stime);
    FILE* out = fopen(file, "w");
    if (out == NULL) return -1;
    fprintf(out, "{\"wall_s\": %.6f, \"user_s\": %.6f, \"system_s\": %.6f, \"peak_kib\": %ld}\n", wall, user, system,
            children.ru_maxrss);
    return fclose(out);
}

int main(int count, char** arguments) {
    int at = 3;
    while (at < count && strcmp(arguments[at], "--") != 0) ++at;
    const int times = count > 3 ? atoi(arguments[2]) : 0;
    if (at + 1 >= count || times < 1) {
        fputs("usage: measure FILE TIMES [NAME=VALUE...] -- COMMAND [ARGUMENT...]\n", stderr);
        return 2;
    }
    char** environment = environment_with(arguments + 3, (size_t)(at - 3));
    // What a command leaves running comes to us, so that it is waited for and counted.
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);

    const double start = now();
    int status = 0;
    for (int i = 0; i < times && status == 0; ++i) status = run(arguments + at + 1, environment);
    while (wait(NULL) > 0) {
    }
    if (write_cost(arguments[1], now() - start) != 0 && status == 0) status = 126;
    return status;
}
