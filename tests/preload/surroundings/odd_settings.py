#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: odd_settings.py LIBRARY PGHOT WORK LAUNCH
Whatever stands in the environment, the program's result and output stay what they are; a setting that cannot be used
costs one line on standard error, which can be read. PGHOT is the command, WORK ordinary_work, LAUNCH launch."""
import os
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from with_and_without import check, end, preloaded, run, same    # noqa: E402

LIBRARY, PGHOT, WORK, LAUNCH = (os.path.realpath(argument) for argument in sys.argv[1:])
LITTLE_WORK = [WORK, "1", "0"]
RIGHT = (7, b"all bytes right\n")
FILES = ("PGHOT_REPORT", "PGHOT_RECORD")
QUICK = ["/bin/sh", "-c", "echo all bytes right; exit 7"]
LINE_BYTES = 400
LONG = b"x" * 65536
GARBAGE = [b" ", b"-1", b"0x10", b"1e3", b"nonsense", b"\xff\xfe\x80", b"\x01\x1b[2J", b"99999999999999999999999", b"1;2",
           b"%s%n%d", b"on off", b"1\nPGHOT_MODE=off", LONG]
# Any text is a file's name, so only these cannot be used.
VALUES = {"PGHOT_REPORT": [LONG, b"/nonexistent/x", b"."], "PGHOT_RECORD": [LONG],
          # A job's name: any word.
          "PGHOT_JOB": [value for value in GARBAGE if value not in (b"-1", b"0x10", b"1e3", b"nonsense", b"9" * 23)]
          + [b"x" * 64, b"../x", b"a/b"],
          # Blanks are no rule; rules that nobody can store are not used in part.
          "PGHOT_PLACEMENT": GARBAGE[1:] + [b";" * 1024 + b"node:0"]}
# What other allocators and the C library listen to.
OTHERS = {"MALLOC_CONF": "abort_conf:true,nonsense:1,prof:true,stats_print:true", "MALLOC_CHECK_": "3",
          "MALLOC_PERTURB_": "165", "MALLOC_ARENA_MAX": "1", "MALLOC_TRACE": "/nonexistent/trace",
          "GLIBC_TUNABLES": "glibc.malloc.check=3:glibc.malloc.perturb=165:glibc.malloc.hugetlb=1:glibc.pthread.rseq=0",
          "LD_BIND_NOW": "1", "LANG": "xx_XX.garbage", "LC_ALL": "\udcff"}


def settings():
    status, table, _ = run([PGHOT, "tunables", "--markdown"], None)
    assert status == 0
    return re.findall(r"`(PGHOT_\w+)`", table.decode())


def with_setting(name, value, folder):
    environment = {key.encode(): text.encode("utf-8", "surrogateescape") for key, text in preloaded(LIBRARY).items()}
    command = LITTLE_WORK if name in FILES else QUICK    # a shell ends without its exit handlers
    return run(command, None, env={**environment, name.encode(): value}, cwd=folder)


def is_one_readable_line(text, name):
    return text.startswith(b"pghot: ") and text.endswith(b"\n") and text.count(b"\n") == 1 and \
        all(32 <= byte < 127 for byte in text[:-1]) and name.encode() in text and len(text) < LINE_BYTES


def values_that_mean_nothing(folder):
    names = settings()
    check("settings are known", len(names) >= 20, names)
    for name in names:
        said = []
        for value in VALUES.get(name, GARBAGE):
            done = with_setting(name, value, folder)
            if done[:2] != RIGHT or not is_one_readable_line(done[2], name):
                said.append((value[:40], done))
        check(f"{name} with values that mean nothing costs a line each", not said, said or "all of them")
        done = with_setting(name, b"", folder)
        check(f"{name} empty is the default", done == (*RIGHT, b""), done)


def many_at_once():
    everything = {name: "nonsense" for name in settings() if name not in FILES}
    unknown = {f"PGHOT_UNKNOWN_{number}": "1" for number in range(100)}
    done = run(LITTLE_WORK, LIBRARY, {**everything, **unknown})
    lines = done[2].splitlines()
    check("everything wrong at once costs few lines", done[:2] == RIGHT and 2 <= len(lines) <= 40
          and all(line.startswith(b"pghot: ") for line in lines), (done[:2], len(lines)))


def environments_that_no_shell_makes():
    for kind, lines in (("none", 0), ("repeated", 1), ("odd", 2)):
        done = run([LAUNCH, kind, *LITTLE_WORK], LIBRARY)
        check(f"environment: {kind}", done[:2] == RIGHT and done[2].count(b"\n") == lines, done)


def settings_of_others():
    for name, value in OTHERS.items():
        done = run(LITTLE_WORK, LIBRARY, {name: value})
        check(f"{name} is not ours", done == (*RIGHT, b""), done)
    many = {f"VARIABLE_{number}": "x" * 1000 for number in range(900)}
    same("a large environment", LITTLE_WORK, LIBRARY, settings=many)


with tempfile.TemporaryDirectory() as scratch:
    values_that_mean_nothing(scratch)
    check("no value made a file", not os.listdir(scratch), os.listdir(scratch))
many_at_once()
environments_that_no_shell_makes()
settings_of_others()
end()
