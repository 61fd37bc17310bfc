/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* System calls denied to this process and all that comes after it, as sandboxes and containers do. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALL(name) \
    { #name, SYS_##name }
static const struct {
    const char* name;
    unsigned number;
} deniable_calls[] = {
    CALL(clone3),
    CALL(close_range),
    CALL(get_mempolicy),
    CALL(getpid),
    CALL(getrandom),
    CALL(getrusage),
    CALL(madvise),
    CALL(mbind),
    CALL(memfd_create),
    CALL(move_pages),
    CALL(mremap),
    CALL(open),
    CALL(openat),
    CALL(perf_event_open),
    CALL(prlimit64),
    CALL(process_madvise),
    CALL(readlink),
    CALL(sched_getaffinity),
    CALL(sched_setaffinity),
    CALL(sched_setattr),
    CALL(set_mempolicy),
    CALL(unshare),
    CALL(userfaultfd),
};
#undef CALL

enum { kDeniable = sizeof deniable_calls / sizeof *deniable_calls };

static unsigned denied_action(const char* answer) {
    if (!strcmp(answer, "kill")) return SECCOMP_RET_KILL_PROCESS;
    if (!strcmp(answer, "EPERM")) return SECCOMP_RET_ERRNO | EPERM;
    if (!strcmp(answer, "ENOSYS")) return SECCOMP_RET_ERRNO | ENOSYS;
    if (!strcmp(answer, "EINVAL")) return SECCOMP_RET_ERRNO | EINVAL;
    fprintf(stderr, "no such answer: %s\n", answer);
    _exit(2);
}

static unsigned deniable_number(const char* name) {
    for (int i = 0; i < kDeniable; i++)
        if (!strcmp(deniable_calls[i].name, name)) return deniable_calls[i].number;
    fprintf(stderr, "no such call: %s\n", name);
    _exit(2);
}

/* `wish` is ANSWER:CALL,CALL... with the answer kill, EPERM, ENOSYS or EINVAL. False where no filter may be set. */
static int deny(const char* wish) {
    struct sock_filter filter[2 * kDeniable + 2];
    unsigned short length = 0;
    char* words = strdup(wish);
    char* rest = NULL;
    const unsigned action = denied_action(strtok_r(words, ":", &rest));
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (char* name; length + 2 < 2 * kDeniable + 2 && (name = strtok_r(NULL, ",", &rest));) {
        filter[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, deniable_number(name), 0, 1);
        filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
    }
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    free(words);
    const struct sock_fprog program = {length, filter};
    return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
