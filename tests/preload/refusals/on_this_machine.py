#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: on_this_machine.py LIBRARY FOLDER_OF_REFUSE
Kernel calls that the library makes on a machine with one tier of memory fail, one by one: the program's result stays, and
the report names the call. What fails on the emulated machine's three nodes: tests/rig/test_refusals."""
import concurrent.futures
import sys

from refused_runs import Row, Stage, cases_of, describe, faults_of

LOADING, RUNNING, STARTING_A_THREAD = "refused_program", "armed", "thread_maker"
CANNOT_HERE = 77
WHOLE_HEAP = {"PGHOT_PLACEMENT": "node:0"}
PLACED = {"PGHOT_PLACEMENT": "size>=1M:node:0"}
SLOW = {"PGHOT_PLACEMENT": "size>=1M:slow; size>=64K:dram"}

TABLE = [
    Row(LOADING, "get_mempolicy", "EPERM ENOSYS"),
    Row(LOADING, "sched_getaffinity", "EPERM EINVAL ENOSYS", silent="EPERM EINVAL ENOSYS"),    # jemalloc's
    Row(LOADING, "uname", "EPERM EFAULT"),
    Row(LOADING, "getcwd", "ENOENT ERANGE", settings={"PGHOT_REPORT": "report.json"}),
    Row(LOADING, "prlimit64", "EPERM", when=("2", "every")),    # the first is the C library's
    Row(LOADING, "mbind", "EPERM ENOSYS ENOMEM EFAULT EIO", settings=WHOLE_HEAP, when=("first", "every")),
    Row(LOADING, "mbind", "EINVAL", settings=WHOLE_HEAP, when=("every",)),
    Row(LOADING, "clone3", "EAGAIN ENOMEM EPERM", names=("pthread_create",), settings=SLOW),
    Row(LOADING, "close_range", "EPERM ENOSYS EMFILE ENOMEM", settings=SLOW),
    Row(RUNNING, "mbind", "EPERM ENOSYS ENOMEM EFAULT EIO", settings=PLACED),
    Row(RUNNING, "mbind", "EINVAL", settings=PLACED, when=("every",)),
    # An older kernel's way is tried.
    Row(RUNNING, "mbind", "EINVAL", settings=PLACED, silent="EINVAL", when=("first", "nth")),
    Row(RUNNING, "sched_getaffinity", "EPERM EINVAL ENOSYS", settings=PLACED),
    Row(RUNNING, "madvise", "ENOMEM EINVAL EPERM EAGAIN"),
    Row(RUNNING, "munmap", "ENOMEM EINVAL EPERM", limit="--as=3000000000"),
    # Asked of a block: ENOMEM or EAGAIN is the answer "one mapping", EFAULT "several", and those many are copied.
    Row(RUNNING, "mremap", "ENOMEM EAGAIN EFAULT", silent="ENOMEM EAGAIN EFAULT", when=("first", "nth")),
    Row(RUNNING, "mremap", "EFAULT", silent="EFAULT", when=("every",)),
    Row(RUNNING, "mremap", "ENOMEM EAGAIN", when=("every",)),
    Row(RUNNING, "mremap", "EINVAL ENOSYS EPERM"),
    Row(RUNNING, "mmap", "ENOMEM", when=("each", "every")),
    Row(RUNNING, "mmap", "EAGAIN EPERM"),
    Row(RUNNING, "mmap", "ENOMEM", when=("each", "every"), settings=PLACED),
    Row(RUNNING, "mmap", "ENOMEM", limit="--as=3000000000"),
    Row(STARTING_A_THREAD, "mmap", "ENOMEM", when=("each", "every"), silent="ENOMEM"),
    Row(STARTING_A_THREAD, "clone3", "EAGAIN", silent="EAGAIN"),
    Row(RUNNING, "clone3", "EAGAIN ENOMEM EPERM", names=("pthread_create",)),
    # The thread that writes the report.
    Row(RUNNING, "close_range", "EPERM ENOSYS EMFILE ENOMEM"),
    Row(RUNNING, "openat", "EMFILE ENFILE EACCES EPERM ENOENT ENOMEM EROFS", silent="ENOENT"),
    Row(RUNNING, "read", "EIO ENODEV ESRCH EPERM"),
    Row(RUNNING, "read", "EINTR", silent="EINTR", when=("first", "odd")),
    Row(RUNNING, "write", "ENOSPC EIO EDQUOT EFBIG EPERM", when=("first",)),
    Row(RUNNING, "write", "EINTR EAGAIN", silent="EINTR EAGAIN", when=("first",)),
]


def judge_row(stage, row):
    """How many runs a row took, and the complaints about them."""
    usual = stage.run(list_calls=True, limit=row.limit, **row.settings)
    count = usual.calls.get(row.thread, {}).get(row.call, 0)
    if usual.status != 0 or usual.output != "right\n" or count == 0 or usual.report["refused_calls"]:
        return 1, [f"undisturbed, with {row.settings} {row.limit}: status {usual.status}, {usual.output!r}, {usual.said!r}, "
                   f"{row.thread}/{row.call} {count} times"]
    runs, complaints = 1, []
    for answer, when in cases_of(row, whole=True, usual_count=count):
        rule = f"{row.thread}/{row.call}:{when}={answer}"
        run = stage.run([rule], limit=row.limit, **row.settings)
        runs += 1
        faults = faults_of(run, "right\n", row, answer)
        if faults:
            complaints.append(f"{rule} {row.settings} {row.limit}: {'; '.join(faults)}; {describe(run)}")
    return runs, complaints


def main():
    stage = Stage(sys.argv[1], sys.argv[2], ["allocate"], {})
    first = stage.run()
    if first.status == CANNOT_HERE:
        print(first.said.strip())
        sys.exit(CANNOT_HERE)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        judged = list(pool.map(lambda row: judge_row(stage, row), TABLE))
    for _, complaints in judged:
        for complaint in complaints:
            print(f"FAILED: {complaint}")
    failed = sum(len(complaints) for _, complaints in judged)
    print(f"{sum(runs for runs, _ in judged)} runs, {failed} failed")
    sys.exit(1 if failed else 0)


main()
