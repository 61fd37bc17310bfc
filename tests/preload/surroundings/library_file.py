#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: library_file.py LIBRARY PGHOT WORK
Where the library lies, and what becomes of its file while programs run. PGHOT is the command, WORK ordinary_work."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from with_and_without import LIMIT_S, check, end, preloaded, run    # noqa: E402

LIBRARY, PGHOT, WORK = (os.path.realpath(argument) for argument in sys.argv[1:])
LITTLE_WORK = [WORK, "2", "1"]
SERVED = (7, b"all bytes right\n", b"")
# Which file of the library is mapped into a child that a child in another folder started.
GRANDCHILD = ["sh", "-c", "cd / && sh -c 'grep -o \"/.*libpghot.so\" /proc/self/maps | sort -u'"]
# Says that it runs, waits for a line, then works on: new memory, threads, a child, another program.
WAITS = """
import os, subprocess, sys, threading
print("runs", flush=True)
sys.stdin.readline()
blocks = [bytearray(1 << 20) for _ in range(40)] + [str(i) for i in range(100000)]
thread = threading.Thread(target=lambda: blocks.append(bytearray(9 << 20)))
thread.start(); thread.join()
child = os.fork()
if child == 0:
    os._exit(len([bytearray(1 << 20) for _ in range(20)]))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 20
print(subprocess.run(["echo", "started"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout, flush=True)
sys.exit(5)
"""


def the_path_of_the_library_counts_from_the_start(folder):
    copy = shutil.copy(LIBRARY, folder)
    for name, preload in (("an absolute path", copy), ("a path below a link", f"{folder}/link/libpghot.so")):
        if not os.path.exists(f"{folder}/link"):
            os.symlink(folder, f"{folder}/link")
        done = run(GRANDCHILD, preload)
        check(f"{name} reaches grandchildren", done == (0, f"{copy}\n".encode(), b""), done)
    done = run([PGHOT, "run", "--library", "libpghot.so", "--", *GRANDCHILD], None, cwd=folder)
    check("pghot run makes a relative path absolute", done == (0, f"{copy}\n".encode(), b""), done)


def a_link_to_the_library(folder):
    os.symlink(LIBRARY, f"{folder}/another-name.so")
    done = run(LITTLE_WORK, f"{folder}/another-name.so")
    check("a link of another name", done == SERVED, done)


def names_that_cannot_be_preloaded(folder):
    for name in ("with a blank", "with:colon", "with$ORIGIN", "with\ttab"):
        place = pathlib.Path(folder, name)
        place.mkdir()
        shutil.copy(LIBRARY, place)
        done = run([PGHOT, "run", "--library", str(place / "libpghot.so"), "--", *LITTLE_WORK], None)
        check(f"pghot run refuses a path {name!r} with one line", done[0] not in (0, 7) and done[1] == b""
              and done[2].startswith(b"pghot: ") and done[2].count(b"\n") == 1 and b"LD_PRELOAD" in done[2], done)
    done = run([PGHOT, "run", "--library", "/nonexistent/libpghot.so", "--", *LITTLE_WORK], None)
    check("pghot run refuses a file that is not there", done[0] not in (0, 7) and done[2].count(b"\n") == 1, done)


def the_file_changes_while_a_program_runs(folder, name, change):
    copy = pathlib.Path(shutil.copy(LIBRARY, f"{folder}/{name}.so"))
    report = pathlib.Path(folder, f"{name}.json")
    with subprocess.Popen([sys.executable, "-c", WAITS], env=preloaded(copy, PGHOT_REPORT=str(report)),
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        runs = program.stdout.readline()
        change(copy)
        try:
            output, errors = program.communicate(b"\n", timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            program.kill()
            output, errors = program.communicate()
    check(f"the file is {name} while a program runs",
          (runs, output, errors, program.returncode) == (b"runs\n", b"b'started\\n'\n", b"", 5) and report.exists(),
          (program.returncode, output, errors, report.exists()))


def replace(file):
    new = file.with_suffix(".new")
    new.write_bytes(b"not a library")
    new.rename(file)


with tempfile.TemporaryDirectory() as scratch:
    the_path_of_the_library_counts_from_the_start(scratch)
    a_link_to_the_library(scratch)
    names_that_cannot_be_preloaded(scratch)
    the_file_changes_while_a_program_runs(scratch, "deleted", pathlib.Path.unlink)
    the_file_changes_while_a_program_runs(scratch, "replaced", replace)
end()
