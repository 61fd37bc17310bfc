#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: resource_limits.py LIBRARY WORK
Programs give the same under tight resource limits with the library as without. WORK is ordinary_work."""
import os
import pathlib
import resource
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from with_and_without import check, end, run, same, skip    # noqa: E402  (the folder is only known now)

LIBRARY, WORK = (os.path.realpath(argument) for argument in sys.argv[1:])
MIB = 1 << 20
INFINITY = resource.RLIM_INFINITY
LONELY = 54399    # a user without any other process, so that RLIMIT_NPROC counts this test alone


def limited(*limits, user=None):
    def before_exec():
        for which, value in limits:
            resource.setrlimit(which, (value, value))
        if user is not None:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
    return before_exec


def without_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
    os.closerange(0, 3)


def start_ups_in_little_address_space():
    """Plain programs of this kind need 3 to 12 MiB, plain jemalloc 9 to 23."""
    shell = ["bash", "-c", 'words=$(echo a b c | cat); (echo "$words"; exit 3); echo $?']
    python = [sys.executable, "-c", "print(sum(range(1000)))"]
    for mib, command in ((16, ["/bin/true"]), (24, shell), (40, python)):
        for name in ("RLIMIT_AS", "RLIMIT_DATA"):
            same(f"{os.path.basename(command[0])} starts under {name} of {mib} MiB", command, LIBRARY,
                 preexec_fn=limited((getattr(resource, name), mib * MIB)))


def memory_that_runs_out_anywhere():
    """In the middle of a realloc, of a thread's first allocation, of a child: a refusal that the program sees (1)."""
    ends = {}
    for mib in range(24, 64, 2):
        status, _, _ = run([WORK, "16", "1"], LIBRARY, preexec_fn=limited((resource.RLIMIT_AS, mib * MIB)))
        ends[mib] = status
    check("memory that runs out is refused, never a crash", set(ends.values()) <= {1, 7} and ends[62] == 7, ends)


def work_under_one_limit():
    cases = {
        "no locked memory": [(resource.RLIMIT_MEMLOCK, 0)],
        "four descriptors": [(resource.RLIMIT_NOFILE, 4)],
        "sixteen descriptors": [(resource.RLIMIT_NOFILE, 16)],
        "no file may grow": [(resource.RLIMIT_FSIZE, 0)],
        "stacks of 128 KiB": [(resource.RLIMIT_STACK, 128 << 10)],
        "unlimited stacks": [(resource.RLIMIT_STACK, INFINITY)],
        "no core files": [(resource.RLIMIT_CORE, 0)],
        "no queued signals": [(resource.RLIMIT_SIGPENDING, 0)],
        "no nice values": [(resource.RLIMIT_NICE, 0), (resource.RLIMIT_RTPRIO, 0)],
        "address space of 256 MiB": [(resource.RLIMIT_AS, 256 * MIB)],
        "data of 128 MiB": [(resource.RLIMIT_DATA, 128 * MIB)],
    }
    for name, limits in cases.items():
        same(f"work with {name}", [WORK, "24", "2"], LIBRARY, preexec_fn=limited(*limits))
    same("work started without a descriptor", [WORK, "24", "2"], LIBRARY, preexec_fn=without_descriptors)


def limits_that_a_program_sets_itself():
    """Once it runs, a program may forbid every further descriptor and file byte."""
    for descriptors in ("0", "3", "4"):
        same(f"work that allows itself {descriptors} descriptors", [WORK, "24", "2", f"descriptors={descriptors}"], LIBRARY)
    done = run([WORK, "24", "2", "descriptors=0"], LIBRARY, {"PGHOT_REPORT": "/nonexistent/report"})
    check("the report that no descriptor is left for costs one line",
          done[0] == 7 and done[1] == b"all bytes right\n" and done[2].count(b"\n") == 1
          and done[2].startswith(b"pghot: PGHOT_REPORT"), done)


def a_report_where_no_file_may_grow():
    with tempfile.TemporaryDirectory() as folder:
        done = run([WORK, "24", "2"], LIBRARY, {"PGHOT_REPORT": f"{folder}/report"},
                   preexec_fn=limited((resource.RLIMIT_FSIZE, 0)))
    check("a report that may not grow costs one line", done[0] == 7 and done[2].count(b"\n") == 1, done)


def no_thread_for_anybody():
    if os.getuid() != 0:
        return skip("RLIMIT_NPROC", "only root can become a user without processes")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        library, work = (shutil.copy(file, folder) for file in (LIBRARY, WORK))
        for command in (["/bin/true"], [work, "24", "2"]):
            same(f"{os.path.basename(command[0])} where no thread can start", command, library,
                 preexec_fn=limited((resource.RLIMIT_NPROC, 1), user=LONELY))
        placed = run([work, "24", "2"], library, {"PGHOT_PLACEMENT": "slow"},
                     preexec_fn=limited((resource.RLIMIT_NPROC, 1), user=LONELY))
        check("placement that cannot ask for nodes without a thread", placed[:2] == (7, b"all bytes right\n"), placed)


start_ups_in_little_address_space()
memory_that_runs_out_anywhere()
work_under_one_limit()
limits_that_a_program_sets_itself()
a_report_where_no_file_may_grow()
no_thread_for_anybody()
end()
