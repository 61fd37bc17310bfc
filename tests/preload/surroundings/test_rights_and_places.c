// SPDX-License-Identifier: Apache-2.0
// Programs that change who they are, what they see and where they run or keep their memory, while threads allocate.
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <linux/mempolicy.h>
#include <malloc.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/preload/cases.h"

enum { kThreads = 3, kNobody = 65534, kPage = 4096, kMib = 1 << 20 };

static atomic_int stop;
static atomic_uint user_seen[kThreads];
static pthread_t threads[kThreads];

static void use_the_heap(void)
{
    for (size_t i = 1; i < 60; i++) {
        const size_t bytes = i % 20 == 0 ? i * 20000 : i * 97;
        unsigned char *block = malloc(bytes);
        REQUIRE(block != NULL);
        memset(block, (int)i, bytes);
        block = realloc(block, bytes * 2);
        REQUIRE(block != NULL && block[0] == i && block[bytes - 1] == i);
        free(block);
    }
}

static void *allocate_until_stopped(void *number)
{
    while (!stop) {
        use_the_heap();
        user_seen[(uintptr_t)number] = geteuid();
    }
    return NULL;
}

static void start_threads(void)
{
    stop = 0;
    for (uintptr_t i = 0; i < kThreads; i++) {
        user_seen[i] = geteuid();
        REQUIRE(pthread_create(&threads[i], NULL, allocate_until_stopped, (void *)i) == 0);
    }
}

static void end_threads(void)
{
    stop = 1;
    for (int i = 0; i < kThreads; i++) REQUIRE(pthread_join(threads[i], NULL) == 0);
}

static void every_thread_becomes(uid_t user)
{
    for (int i = 0; i < kThreads; i++)
        while (user_seen[i] != user) sched_yield();
}

static void need_root(void)
{
    if (geteuid() != 0) SKIP("only root can become somebody else");
}

static void users_change_back_and_forth(void)
{
    need_root();
    start_threads();
    for (int i = 0; i < 10; i++) {
        REQUIRE(seteuid(kNobody) == 0);
        use_the_heap();
        REQUIRE(seteuid(0) == 0);
    }
    REQUIRE(seteuid(kNobody) == 0);
    every_thread_becomes(kNobody);
    end_threads();
}

static void rights_are_given_up_for_good(void)
{
    need_root();
    start_threads();
    REQUIRE(setgroups(0, NULL) == 0 && setresgid(kNobody, kNobody, kNobody) == 0);
    REQUIRE(setresuid(kNobody, kNobody, kNobody) == 0);
    every_thread_becomes(kNobody);
    end_threads();
    REQUIRE(setuid(0) != 0);
    REQUIRE(end_in_child(use_the_heap) == 0);
}

// As servers do: an empty folder is all that is left, then no rights.
static void a_program_shuts_itself_in(void)
{
    char folder[] = "/tmp/shut-in-XXXXXX";
    need_root();
    REQUIRE(mkdtemp(folder) != NULL);
    start_threads();
    // Removed while it is the root, so that nothing is left behind.
    REQUIRE(chdir(folder) == 0 && rmdir(folder) == 0 && chroot(".") == 0);
    REQUIRE(setresuid(kNobody, kNobody, kNobody) == 0);
    use_the_heap();
    REQUIRE(end_in_child(use_the_heap) == 0);
    end_threads();
    REQUIRE(access("/proc/self", F_OK) != 0);
}

static void processors_are_chosen_by_the_program(void)
{
    cpu_set_t all, one, seen;
    REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0);
    start_threads();
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &all)) continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
        use_the_heap();
        REQUIRE(sched_getaffinity(0, sizeof seen, &seen) == 0 && CPU_EQUAL(&seen, &one));
        REQUIRE(sched_getcpu() == cpu);
        REQUIRE(end_in_child(use_the_heap) == 0);
    }
    REQUIRE(sched_setaffinity(0, sizeof all, &all) == 0);
    end_threads();
}

static long policy(const void *address, int *mode, unsigned long *nodes)
{
    unsigned long mask[16] = {0};
    const long answer = syscall(SYS_get_mempolicy, mode, mask, 1024UL, address, address ? MPOL_F_ADDR : 0UL);
    *nodes = mask[0];
    return answer;
}

static void memory_policies_are_the_programs(void)
{
    const unsigned long node_0[16] = {1};
    unsigned long nodes;
    int mode;
    if (policy(NULL, &mode, &nodes)) SKIP("get_mempolicy is refused here");
    REQUIRE(mode == MPOL_DEFAULT);
    char *block = memalign(kPage, 8 * kMib);
    REQUIRE(syscall(SYS_mbind, block, 8UL * kMib, MPOL_BIND, node_0, 1024UL, 0UL) == 0);
    memset(block, 1, 8 * kMib);
    REQUIRE(syscall(SYS_set_mempolicy, MPOL_BIND, node_0, 1024UL) == 0);
    use_the_heap();
    REQUIRE(policy(NULL, &mode, &nodes) == 0 && mode == MPOL_BIND && nodes == 1);
    REQUIRE(policy(block, &mode, &nodes) == 0 && mode == MPOL_BIND && nodes == 1);
    free(block);
    REQUIRE(syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0UL) == 0);
}

static int node_of(void *page)
{
    int status = 1000;
    REQUIRE(syscall(SYS_move_pages, 0, 1UL, &page, NULL, &status, 0) == 0);
    return status;
}

static void pages_of_the_heap_answer_like_others(void)
{
    void *probe = &probe;
    int status;
    if (syscall(SYS_move_pages, 0, 1UL, &probe, NULL, &status, 0)) SKIP("move_pages is refused here");
    char *block = memalign(kPage, 64 * kMib);
    block[0] = 1;
    REQUIRE(node_of(block) >= 0);
    REQUIRE(node_of(block + 40 * kMib) == -ENOENT);    // never touched
    madvise(block, kPage, MADV_DONTNEED);
    REQUIRE(node_of(block) == -ENOENT);
    block[0] = 1;
    const int here = node_of(block);
    void *page = block;
    REQUIRE(syscall(SYS_move_pages, 0, 1UL, &page, &here, &status, MPOL_MF_MOVE) == 0 && status == here);
    free(block);
}

int main(int count, char **arguments)
{
    static const struct Case cases[] = {
        {"UsersChangeBackAndForth", users_change_back_and_forth},
        {"RightsAreGivenUpForGood", rights_are_given_up_for_good},
        {"AProgramShutsItselfIn", a_program_shuts_itself_in},
        {"ProcessorsAreChosenByTheProgram", processors_are_chosen_by_the_program},
        {"MemoryPoliciesAreThePrograms", memory_policies_are_the_programs},
        {"PagesOfTheHeapAnswerLikeOthers", pages_of_the_heap_answer_like_others},
    };
    return RUN_CASE(count, arguments, cases);
}
