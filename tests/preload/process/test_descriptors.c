// SPDX-License-Identifier: Apache-2.0
// The descriptor table is the program's: nothing of ours is in it at any time, and nothing is written to it. With
// PGHOT_PLACEMENT=slow too, for which files were read at load, and with a report, for which one is written at the end.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/preload/cases.h"

enum { kHighest = 1024 };
static char *own_program;

// /proc/self/fd itself needs a descriptor; asking does not.
static int is_open(int descriptor) { return fcntl(descriptor, F_GETFD) != -1; }

static int open_from(int first)
{
    int count = 0;
    for (int each = first; each < kHighest; each++) count += is_open(each);
    return count;
}

static void close_from(unsigned first) { REQUIRE(syscall(SYS_close_range, first, ~0u, 0) == 0); }

static void do_work(void)
{
    struct Busy busy = start_busy(2);
    allocate_some(1, 2000);
    char *large = malloc(80 << 20);    // beyond PGHOT_START_MIN
    REQUIRE(large != NULL);
    memset(large, 1, 16 << 20);
    free(large);
    end_busy(&busy);
}

static void start_anew(const char *case_name)
{
    execl(own_program, own_program, case_name, (char *)NULL);
    _exit(30);
}

static int end_of_new_program(const char *case_name, unsigned closed_from)
{
    const pid_t child = fork_child();
    if (child == 0) {
        close_from(closed_from);
        start_anew(case_name);
    }
    return end_of(child);
}

static void has_only_standard_descriptors(void)
{
    REQUIRE(open_from(0) == 3);
    do_work();
    REQUIRE(open_from(0) == 3);
    REQUIRE(dup(0) == 3);
}

static void no_descriptor_is_open_beyond_the_programs(void)
{
    REQUIRE(end_of_new_program("HasOnlyStandardDescriptors", 3) == 0);
}

// Exit statuses, as there is nowhere to write to.
static void has_no_descriptors(void)
{
    if (open_from(0) != 0) _exit(2);
    int made[3];
    for (int i = 0; i < 3; i++) made[i] = memfd_create("data", 0);
    for (int i = 0; i < 3; i++)
        if (made[i] != i || write(i, "payload\n", 8) != 8) _exit(3);
    do_work();
    if (malloc((size_t)1 << 61) != NULL) _exit(4);
    for (int i = 0; i < 3; i++) {
        struct stat info;
        if (fstat(i, &info) != 0 || info.st_size != 8) _exit(5);    // somebody wrote to "standard error"
    }
    if (open_from(3) != 0) _exit(6);
}

static void started_with_all_descriptors_closed(void)
{
    REQUIRE(end_of_new_program("HasNoDescriptors", 0) == 0);
}

// As many daemons and shells do, in the middle of things.
static void sweep_in_the_middle(void)
{
    for (int i = 0; i < 5; i++) {
        do_work();
        const int lowest = dup(0);
        close_from(3);
        REQUIRE(open_from(3) == 0);
        REQUIRE(dup(0) == 3);
        REQUIRE(lowest >= 3);
    }
    for (int each = 0; each < 3; each++) close(each);
    do_work();
    if (open_from(0) != 1) _exit(2);
}

static void every_descriptor_can_be_swept(void) { REQUIRE(end_in_child(sweep_in_the_middle) == 0); }

static void *use_low_numbers(void *unused)
{
    for (int i = 0; i < 3000; i++) {
        const int made = open("/dev/null", O_RDONLY);
        if (made != 3) return unused;
        close(made);
        if (i % 16 == 0) free(malloc(200000));
    }
    return NULL;
}

// Shells and job servers count on numbers: while others allocate, the next free one stays the next free one.
static void the_lowest_free_number_is_the_programs(void)
{
    close_from(3);
    struct Busy busy = start_busy(3);
    char complaint;
    REQUIRE(use_low_numbers(&complaint) == NULL);
    end_busy(&busy);
}

static void allocate_without_descriptors(void)
{
    const struct rlimit none = {0, 0};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
    REQUIRE(open("/dev/null", O_RDONLY) == -1 && errno == EMFILE);
    do_work();
    exit(3);
}

static void work_goes_on_without_a_descriptor_to_have(void)
{
    REQUIRE(end_in_child(allocate_without_descriptors) == 3);
}

static void be_a_daemon(int status_pipe)
{
    setsid();
    if (fork() != 0) _exit(0);
    REQUIRE(chdir("/") == 0);
    umask(0);
    // The pipe is kept at number 0; all else goes.
    dup2(status_pipe, 0);
    close_from(1);
    do_work();
    const pid_t worker = fork();
    if (worker == 0) {
        do_work();
        exit(5);
    }
    const char ok = end_of(worker) == 5 && open_from(1) == 0 ? 'y' : 'n';
    if (write(0, &ok, 1) != 1) _exit(1);
    exit(0);
}

// Forks twice, leaves its session and closes everything; the end of its life is seen by the pipe's end.
static void daemon_works_and_ends(void)
{
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const pid_t child = fork_child();
    if (child == 0) be_a_daemon(ends[1]);
    REQUIRE(end_of(child) == 0);
    close(ends[1]);
    char answer[4] = "";
    REQUIRE(read(ends[0], answer, sizeof answer) == 1 && answer[0] == 'y');
    REQUIRE(read(ends[0], answer, sizeof answer) == 0);
}

static const struct Case cases[] = {
    {"NoDescriptorIsOpenBeyondTheProgramsOwn", no_descriptor_is_open_beyond_the_programs},
    {"StartedWithAllDescriptorsClosed", started_with_all_descriptors_closed},
    {"EveryDescriptorCanBeSwept", every_descriptor_can_be_swept},
    {"TheLowestFreeNumberIsTheProgramsOwn", the_lowest_free_number_is_the_programs},
    {"WorkGoesOnWithoutADescriptorToHave", work_goes_on_without_a_descriptor_to_have},
    {"DaemonWorksAndEnds", daemon_works_and_ends},
    // Programs that the others start.
    {"HasOnlyStandardDescriptors", has_only_standard_descriptors},
    {"HasNoDescriptors", has_no_descriptors},
};

int main(int count, char **arguments)
{
    own_program = arguments[0];
    return RUN_CASE(count, arguments, cases);
}
