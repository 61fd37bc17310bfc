#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: kinds_of_calls.py LIBRARY WORK RECORD
On a machine with one tier a program under the library makes no kind of system call that it would not make with the C
library or with plain jemalloc, but the stated ones: what a sandbox must allow is known. WORK is ordinary_work, RECORD
record_calls."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from with_and_without import SKIP, check, end, run, skip    # noqa: E402

LIBRARY, WORK, RECORD = (os.path.realpath(argument) for argument in sys.argv[1:])
# x86-64. Which nodes may be used is asked at load; the process number tells a vfork child from its parent.
STATED = {239: "get_mempolicy", 39: "getpid"}
STATED_FOR_MODE_OFF = {39}
PLAIN_JEMALLOC = "libjemalloc.so.2"
MEMORY_NODES = pathlib.Path("/sys/devices/system/node/has_memory")
PROGRAMS = {"true": ["/bin/true"], "work": [WORK, "24", "2"],
            "shell": ["bash", "-c", "for i in 1 2; do echo $(expr $i + $i) | cat; done"]}


def kinds(command, library, **settings):
    status, output, errors = run([RECORD, *command], library, settings)
    if status != 0:
        skip("kinds of calls", f"programs cannot be traced here: {status} {errors}")
        end()
    return {int(line) for line in output.split()}


def names(numbers):
    return [STATED.get(number, number) for number in sorted(numbers)]


if MEMORY_NODES.exists() and MEMORY_NODES.read_text().strip() != "0":
    skip("kinds of calls", "this machine has several memory nodes")
    end()
for name, command in PROGRAMS.items():
    usual = kinds(command, None) | kinds(command, PLAIN_JEMALLOC)
    ours = kinds(command, LIBRARY)
    check(f"{name} makes the usual calls", len(usual) > 5 and ours <= usual | set(STATED),
          f"{len(ours)} kinds, beyond the usual {names(ours - usual)}")
    off = kinds(command, LIBRARY, PGHOT_MODE="off")
    check(f"{name} makes the usual calls with tiering off", off <= usual | STATED_FOR_MODE_OFF, names(off - usual))
end()
