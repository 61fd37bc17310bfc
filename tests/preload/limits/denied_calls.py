#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: denied_calls.py LIBRARY WORK DENY
Sandboxes that refuse system calls, or kill whoever makes them, put on before the program starts or by the program
itself: programs give the same with the library as without. WORK is ordinary_work, DENY deny_calls."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from with_and_without import SKIP, check, end, run, same, skip    # noqa: E402

LIBRARY, WORK, DENY = (os.path.realpath(argument) for argument in sys.argv[1:])
REFUSALS = ("EPERM", "ENOSYS", "EINVAL")
# What tiering, placement and reports are made of. No allocator needs any of it, at start or later.
TIERING = ["close_range", "perf_event_open", "move_pages", "mbind", "set_mempolicy", "memfd_create", "process_madvise",
           "userfaultfd", "unshare", "sched_setaffinity", "sched_setattr", "readlink"]
# What an allocator may ask for at start, and what the library may.
AT_START = ["get_mempolicy", "sched_getaffinity", "getrandom", "prlimit64", "madvise", "mremap", "open", "clone3",
            "getpid", "getrusage"]
# A program that has started needs none of these for its heap.
AFTER_START = TIERING + ["get_mempolicy", "openat", "open", "getpid", "getrandom", "getrusage", "prlimit64"]
SHELL = ["bash", "-c", "for i in 1 2 3; do echo $(expr $i + $i); done; exit 4"]
LITTLE_WORK = [WORK, "2", "0"]
MUCH_WORK = [WORK, "24", "2"]


def denied(answer, calls):
    return [DENY, f"{answer}:{','.join(calls)}"]


def from_outside(name, command, answer, calls):
    same(f"{name} in a sandbox with {answer} for {','.join(calls)}", [*denied(answer, calls), *command], LIBRARY)


def by_itself(answer, calls):
    done = run([*MUCH_WORK, f"deny={answer}:{','.join(calls)}"], LIBRARY)
    check(f"work that sandboxes itself with {answer} for {','.join(calls)}", done == (7, b"all bytes right\n", b""), done)


def sandboxes_that_kill():
    for name, command in (("true", ["/bin/true"]), ("shell", SHELL), ("work", MUCH_WORK)):
        from_outside(name, command, "kill", TIERING)
    # The C library's own threads and children use it.
    from_outside("true", ["/bin/true"], "kill", ["clone3"])
    by_itself("kill", AFTER_START)


def sandboxes_that_refuse():
    for answer in REFUSALS:
        for name, command in (("true", ["/bin/true"]), ("shell", SHELL), ("work", MUCH_WORK)):
            from_outside(name, command, answer, TIERING)
        for call in AT_START:
            from_outside("work", LITTLE_WORK, answer, [call])
        from_outside("true", ["/bin/true"], answer, AT_START)
        by_itself(answer, AFTER_START + ["sched_getaffinity", "madvise", "mremap"])


def what_was_asked_for_is_said():
    """A setting that the sandbox makes impossible costs a line, never the program."""
    settings = {"PGHOT_REPORT": "/nonexistent/report", "PGHOT_PLACEMENT": "node:0"}
    for answer in REFUSALS:
        done = run([*denied(answer, TIERING + ["get_mempolicy"]), *MUCH_WORK], LIBRARY, settings)
        lines = done[2].splitlines()
        check(f"settings under {answer}", done[:2] == (7, b"all bytes right\n")
              and all(line.startswith(b"pghot: ") for line in lines) and 1 <= len(lines) <= 3, done)


if run([*denied("EPERM", ["mbind"]), "/bin/true"], None)[0] == SKIP:
    skip("denied calls", "no seccomp filter may be set here")
    end()
sandboxes_that_kill()
sandboxes_that_refuse()
what_was_asked_for_is_said()
end()
