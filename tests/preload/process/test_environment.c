// SPDX-License-Identifier: Apache-2.0
// What the program does to its environment and its arguments is its own affair, and is found as it was left.
#define _GNU_SOURCE
#include <ctype.h>

#include "tests/preload/cases.h"

extern char **environ;
static char **own_arguments;
static char *own_program;

static void work(void)
{
    struct Busy busy = start_busy(2);
    allocate_some(1, 2000);
    free(calloc(1, 100 << 20));
    end_busy(&busy);
}

static void work_in_child(void)
{
    work();
    exit(3);
}

static void the_environment_stays_as_it_was(void)
{
    char **const array = environ;
    int count = 0;
    while (environ[count] != NULL) count++;
    char **copies = calloc((size_t)count, sizeof *copies);
    for (int i = 0; i < count; i++) copies[i] = strdup(environ[i]);
    REQUIRE(getenv("LD_PRELOAD") != NULL && strstr(getenv("LD_PRELOAD"), "libpghot") != NULL);
    work();
    REQUIRE(end_in_child(work_in_child) == 3);
    REQUIRE(environ == array && environ[count] == NULL);
    for (int i = 0; i < count; i++) {
        REQUIRE(strcmp(environ[i], copies[i]) == 0);
        free(copies[i]);
    }
    free(copies);
}

static void run_without_environment(void)
{
    REQUIRE(environ == NULL || environ[0] == NULL);
    work();
    REQUIRE(end_in_child(work_in_child) == 3);
    REQUIRE(setenv("ANYTHING", "new", 1) == 0 && strcmp(getenv("ANYTHING"), "new") == 0);
    work();
}

static void the_environment_can_be_cleared(void)
{
    REQUIRE(clearenv() == 0);
    run_without_environment();
}

static void the_environment_can_be_taken_away(void)
{
    environ = NULL;
    run_without_environment();
}

// The kernel's copy of arguments and environment becomes the title of the process, as servers do it.
static void a_title_is_written_over_the_environment(void)
{
    char *const begin = own_arguments[0];
    char *end = begin;
    for (int i = 0; own_arguments[i] != NULL; i++) end = own_arguments[i] + strlen(own_arguments[i]) + 1;
    for (int i = 0; environ[i] != NULL && environ[i] == end; i++) end += strlen(environ[i]) + 1;
    REQUIRE(end - begin > 100);
    memset(begin, 't', (size_t)(end - begin));    // no zero byte is left
    work();
    REQUIRE(end_in_child(work_in_child) == 3);
}

static void *change_environment(void *seed)
{
    for (int i = 0; i < 3000; i++) {
        char name[32], value[300];
        snprintf(name, sizeof name, "NAME_%zu_%d", (size_t)seed, i % 50);
        snprintf(value, sizeof value, "%0*d", i % 299, i);
        REQUIRE(setenv(name, value, 1) == 0);
        if (i % 3 == 0) REQUIRE(unsetenv(name) == 0);
    }
    return NULL;
}

static void the_environment_changes_while_others_fork(void)
{
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++) threads[i] = start_thread(change_environment, (void *)i);
    for (int i = 0; i < 100; i++) {
        const pid_t child = fork_child();
        if (child == 0) {
            allocate_some((unsigned)i, 100);
            exit(0);
        }
        REQUIRE(end_of(child) == 0);
    }
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
}

// What LD_PRELOAD says is handed on: to a program started with the environment, and not to one started without.
static void report_library(void) { _exit(pghot_placement_of != NULL ? 6 : 5); }

static void the_library_goes_where_the_environment_goes(void)
{
    char *arguments[] = {own_program, (char[]){"ReportLibrary"}, NULL};
    const pid_t with = fork_child();
    if (with == 0) {
        execv(own_program, arguments);
        _exit(30);
    }
    REQUIRE(end_of(with) == 6);
    char *bare[] = {(char[]){"PATH=/usr/bin:/bin"}, NULL};
    const pid_t without = fork_child();
    if (without == 0) {
        execle("/bin/sh", "sh", "-c", "exit ${LD_PRELOAD:+1}", (char *)NULL, bare);
        _exit(30);
    }
    REQUIRE(end_of(without) == 0);
}

static const struct Case cases[] = {
    {"TheEnvironmentStaysAsItWas", the_environment_stays_as_it_was},
    {"TheEnvironmentCanBeCleared", the_environment_can_be_cleared},
    {"TheEnvironmentCanBeTakenAway", the_environment_can_be_taken_away},
    {"ATitleIsWrittenOverTheEnvironment", a_title_is_written_over_the_environment},
    {"TheEnvironmentChangesWhileOthersFork", the_environment_changes_while_others_fork},
    {"TheLibraryGoesWhereTheEnvironmentGoes", the_library_goes_where_the_environment_goes},
    {"ReportLibrary", report_library},    // the program that the case before starts
};

int main(int count, char **arguments)
{
    own_arguments = arguments;
    own_program = strdup(arguments[0]);
    return RUN_CASE(count, arguments, cases);
}
