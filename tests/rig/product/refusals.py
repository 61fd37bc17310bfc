# SPDX-License-Identifier: Apache-2.0
"""usage: refusals.py [--all] [CALL...]
Each kernel call of the runtime is made to fail while memory comes home: the program prints what it always prints, ends as
it always ends, and the report names what was refused. Without --all every call once, with the answer that is likeliest;
with it each answer at the first call, at one in the middle and at every call."""
import argparse
import concurrent.futures
import os
import pathlib
import sys
import time

from harness import BUILD, LIBRARY, Checks

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "preload" / "refusals"))
from refused_runs import Row, Stage, cases_of, describe, faults_of    # noqa: E402

SAMPLER, MOVER, STARTER, PROGRAM = "pghot-sampler", "pghot-mover", "refused_program", "armed"

MOST_TRIES = 4

SLOW = {"PGHOT_PLACEMENT": "slow"}

# Made by the C library for a thread of ours, or unable to fail. set_robust_list, rseq: the thread works without.
NOT_OURS = {"exit", "getpid", "gettid", "rseq", "rt_sigprocmask", "set_robust_list"}

MOVE_ERRORS = "ENOMEM EPERM EACCES EFAULT EINVAL ENODEV ESRCH ENOENT E2BIG ENOSYS"
# pgpromote_fail by errno; what the kernel stopped at without a word counts as busy.
FATES = {"statuses:EBUSY": "pgpromote_fail_busy", "statuses:ENOMEM": "pgpromote_fail_nomem",
         "statuses:EFAULT": "pgpromote_fail_fault", "statuses:ENOENT": "pgpromote_fail_fault",
         "statuses:EACCES": "pgpromote_fail_access", "statuses:EIO": "pgpromote_fail_other",
         "untouched": "pgpromote_fail_busy", "left:1": "pgpromote_fail_busy", "left:100000": "pgpromote_fail_busy"}
# The mover calls once more for pages that a pinned one held up.
HEALED = ("statuses:EBUSY", "untouched", "left:1", "left:100000")


def job(name):
    return {"PGHOT_JOB": f"refused-{name}"}


TABLE = [
    # Start, on the program's thread.
    Row(STARTER, "get_mempolicy", "EPERM ENOSYS EFAULT EINVAL"),
    Row(STARTER, "sched_getaffinity", "EPERM EINVAL ENOSYS", when=("2", "every")),    # the first is jemalloc's
    Row(STARTER, "getrusage", "EPERM EINVAL"),
    Row(STARTER, "uname", "EPERM EFAULT"),
    Row(STARTER, "clone3", "EAGAIN ENOMEM EPERM", names=("pthread_create",)),
    # The sampler.
    Row(SAMPLER, "close_range", "EPERM ENOSYS EMFILE ENOMEM EINVAL"),
    Row(SAMPLER, "openat", "EMFILE ENFILE EACCES EPERM ENOENT ENOMEM ELOOP", silent="ENOENT"),
    Row(SAMPLER, "read", "EIO ENODEV ESRCH ENOMEM EPERM EAGAIN"),
    Row(SAMPLER, "read", "short EINTR", silent="EINTR short", when=("odd", "first")),
    Row(SAMPLER, "getdents64", "EPERM ENOENT ENOTDIR EFAULT ENOMEM short", silent="short"),
    Row(SAMPLER, "close", "EIO EINTR", silent="EIO EINTR"),
    Row(SAMPLER, "memfd_create", "EPERM ENOSYS EMFILE ENFILE ENOMEM"),
    Row(SAMPLER, "ftruncate", "EPERM EINVAL EIO"),
    Row(SAMPLER, "mmap", "ENOMEM EPERM EAGAIN EACCES ENODEV EINVAL"),
    Row(SAMPLER, "madvise", "EPERM EINVAL ENOMEM EAGAIN"),
    Row(SAMPLER, "munmap", "ENOMEM EINVAL EPERM"),
    Row(SAMPLER, "perf_event_open", "EACCES EPERM EINVAL ENOENT ENODEV EMFILE EBUSY EOPNOTSUPP E2BIG ESRCH ENOSYS ENOMEM "
        "ENOSPC EINTR", silent="ESRCH"),
    Row(SAMPLER, "get_mempolicy", "EPERM ENOSYS EFAULT EINVAL"),
    Row(SAMPLER, "query_pages", MOVE_ERRORS, likely="EPERM"),
    Row(SAMPLER, "futex", "EINTR EAGAIN ETIMEDOUT ENOSYS EPERM", likely="EPERM", silent="EINTR EAGAIN ETIMEDOUT"),
    Row(SAMPLER, "clock_gettime", "EPERM EINVAL"),
    Row(SAMPLER, "write", "ENOSPC EIO EDQUOT EFBIG EPERM"),
    Row(SAMPLER, "write", "short EINTR", silent="EINTR short", when=("odd", "first")),
    Row(SAMPLER, "write", "EAGAIN", when=("first", "nth"), silent="EAGAIN"),
    # The job's board. The lock is asked for again while somebody has it.
    Row(SAMPLER, "flock", "ENOLCK EINVAL EINTR EAGAIN", settings=job("flock"), silent="EINTR EAGAIN"),
    Row(SAMPLER, "newfstatat", "EIO EACCES ENOMEM", settings=job("fstat")),
    Row(SAMPLER, "fallocate", "ENOSPC EOPNOTSUPP EINTR EPERM", settings=job("fallocate")),
    Row(SAMPLER, "unlink", "EPERM EACCES EROFS EBUSY", settings=job("unlink"), when=("first", "every")),
    # The mover.
    Row(MOVER, "clone3", "EAGAIN ENOMEM EPERM", names=("pthread_create",)),
    Row(MOVER, "mmap", "ENOMEM EPERM EAGAIN", names=("mmap", "pthread_create")),
    Row(MOVER, "mprotect", "ENOMEM EACCES", names=("pthread_create",)),
    Row(MOVER, "madvise", "EPERM EINVAL ENOMEM"),
    Row(MOVER, "prctl", "EPERM EINVAL"),
    Row(MOVER, "sched_setaffinity", "EPERM EINVAL ESRCH"),
    Row(MOVER, "get_mempolicy", "EPERM ENOSYS EFAULT EINVAL"),
    Row(MOVER, "query_pages", MOVE_ERRORS, likely="EPERM"),
    Row(MOVER, "query_pages", "statuses:ENOENT statuses:EFAULT statuses:EACCES untouched left:1",
        silent="statuses:ENOENT statuses:EFAULT statuses:EACCES untouched left:1"),
    Row(MOVER, "move_pages", MOVE_ERRORS, likely="EPERM"),
    *[Row(MOVER, "move_pages", answer, counter=FATES, when=("every",)) for answer in FATES],
    # What a second call heals leaves no page behind to be counted.
    *[Row(MOVER, "move_pages", answer, counter=FATES, when=("first", "nth")) for answer in FATES if answer not in HEALED],
    *[Row(MOVER, "move_pages", answer, silent=answer, when=("first", "nth")) for answer in HEALED],
    Row(MOVER, "move_pages", "half", silent="half"),
    # The C library ends the process when its own wait, for the sampler's end, fails in another way.
    Row(MOVER, "futex", "EINTR EAGAIN ETIMEDOUT", silent="EINTR EAGAIN ETIMEDOUT"),
    Row(MOVER, "clock_gettime", "EPERM EINVAL"),
    # The program's thread while it runs. What malloc answers then is the C standard's: no memory.
    Row(PROGRAM, "madvise", "ENOMEM EINVAL EPERM EAGAIN"),
    Row(PROGRAM, "mmap", "ENOMEM EAGAIN EPERM", names=("mmap",)),
    # Asked of a block: ENOMEM or EAGAIN is the answer "one mapping", EFAULT "several", and those many are copied.
    Row(PROGRAM, "mremap", "ENOMEM EAGAIN EFAULT", silent="ENOMEM EAGAIN EFAULT", when=("first", "nth")),
    Row(PROGRAM, "mremap", "EFAULT", silent="EFAULT", when=("every",)),
    Row(PROGRAM, "mremap", "ENOMEM EAGAIN", when=("every",)),
    Row(PROGRAM, "mremap", "EINVAL ENOSYS EPERM"),
    Row(STARTER, "mbind", "ENOMEM EPERM ENOSYS EFAULT EIO", likely="EPERM", settings=SLOW),
    Row(STARTER, "mbind", "EINVAL", settings=SLOW, when=("every",)),
    # The first EINVAL means that the kernel does not know MPOL_PREFERRED_MANY; MPOL_PREFERRED does as well.
    Row(STARTER, "mbind", "EINVAL", settings=SLOW, silent="EINVAL", when=("first", "nth")),
]


def calls_without_row(calls):
    covered = {(row.thread, row.call) for row in TABLE}
    return sorted(f"{thread}/{call}" for thread in (SAMPLER, MOVER) for call in calls.get(thread, {})
                  if call not in NOT_OURS and (thread, call) not in covered)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("calls", nargs="*")
    options = parser.parse_args()
    checks = Checks()
    stage = Stage(LIBRARY, BUILD / "tests" / "preload" / "refusals", ["hot", "500"],
                  {"PGHOT_START_MIN": 0, "PGHOT_FREQ_THRESHOLD": 1, "PGHOT_IBS_PERIOD": 2048, "PGHOT_IBS_L3MISSONLY": 0,
                   "PGHOT_SAMPLER_CPU": 100})
    for _ in range(MOST_TRIES):
        usual = stage.run(list_calls=True)
        if usual.report["counters"]["pgpromote_success"] > 0:
            break
    expected = usual.output
    checks.that("undisturbed, the program is right and pages come home", usual.status == 0 and expected.startswith("right ")
                and usual.report["counters"]["pgpromote_success"] > 0, f"{usual.status} {expected!r} {describe(usual)}")
    checks.that("undisturbed, nothing is refused", not usual.report["refused_calls"])
    missing = calls_without_row(usual.calls)
    checks.that("every call of the runtime's threads is in the table", not missing, ", ".join(missing))
    begin = time.monotonic()
    cases = [(row, answer, when) for row in TABLE if not options.calls or row.call in options.calls
             for answer, when in cases_of(row, options.all, usual.calls.get(row.thread, {}).get(row.call, 0))]

    def judge(case):
        row, answer, when = case
        rule = f"{row.thread}/{row.call}:{when}={answer}"
        # On a busy host little happens in a short time, and how often a call is made varies.
        for _ in range(MOST_TRIES):
            run = stage.run([rule], **row.settings)
            if sum(run.refused) > 0 or when.isdigit():
                break
        faults = faults_of(run, expected, row, answer)
        if sum(run.refused) == 0 and not when.isdigit():
            faults.append("the call was never made")
        checks.that(f"{rule} ({sum(run.refused)} times)", not faults, f"{'; '.join(faults)} {describe(run)}")

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(judge, cases))
    print(f"{len(cases)} runs in {time.monotonic() - begin:.0f} s", flush=True)
    checks.end()


main()
