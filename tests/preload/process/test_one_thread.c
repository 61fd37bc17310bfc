// SPDX-License-Identifier: Apache-2.0
// A program with one thread stays one where there is one tier of memory, from its first instruction on: container
// starters and sandboxes leave their name spaces with calls that a second thread forbids.
#define _GNU_SOURCE
#include <dirent.h>
#include <sched.h>

#include "tests/preload/cases.h"

static int threads(void)
{
    DIR *folder = opendir("/proc/self/task");
    REQUIRE(folder != NULL);
    int count = 0;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

static void grow(void)
{
    char *large = malloc(100 << 20);    // beyond PGHOT_START_MIN
    REQUIRE(large != NULL);
    memset(large, 1, 100 << 20);
    allocate_some(1, 3000);
    free(large);
}

static int has_one_memory_node(void)
{
    FILE *file = fopen("/sys/devices/system/node/has_memory", "r");
    char nodes[64] = "0";
    if (file != NULL && fgets(nodes, sizeof nodes, file) == NULL) nodes[0] = '\0';
    if (file != NULL) fclose(file);
    return strpbrk(nodes, "-,") == NULL;
}

static void stays_alone(void)
{
    if (!has_one_memory_node()) SKIP("more than one memory node: tiering may start");
    REQUIRE(threads() == 1);
    grow();
    REQUIRE(threads() == 1);
}

static void leave_user_name_space(void) { _exit(unshare(CLONE_NEWUSER) == 0 ? 0 : errno); }

static char *own_program;

// At once after the start, anew each time: a thread that did something at load may be there still. The kernel says
// EINVAL then.
static void leaves_its_user_name_space(void)
{
    const int in_child = end_in_child(leave_user_name_space);
    if (in_child == EPERM || in_child == ENOSPC) SKIP("unshare(CLONE_NEWUSER) is not permitted here");
    for (int i = 0; i < 300; i++) {
        const pid_t child = fork_child();
        if (child == 0) {
            execl(own_program, own_program, "LeaveUserNameSpace", (char *)NULL);
            _exit(30);
        }
        REQUIRE(end_of(child) == 0);
    }
}

static const struct Case cases[] = {
    {"StaysAlone", stays_alone},
    {"LeavesItsUserNameSpace", leaves_its_user_name_space},
    {"LeaveUserNameSpace", leave_user_name_space},    // the program that LeavesItsUserNameSpace starts
};

int main(int count, char **arguments)
{
    own_program = arguments[0];
    return RUN_CASE(count, arguments, cases);
}
