#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: standard_error.py LIBRARY
What the library says on standard error (settings it cannot use, a report that was asked for) never ends a program whose
standard error nobody reads, and never gets into a file that the program opened under number 2."""
import os
import pathlib
import subprocess
import sys
import tempfile

# Gives number 2 to a data file, as daemons do, and ends with status 3.
TAKES_NUMBER_TWO = """
import os, sys
os.close(2)
assert os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY) == 2
os.write(2, b"data")
sys.exit(3)
"""
LIBRARY = sys.argv[1]


def environment(**settings):
    return dict(os.environ, LD_PRELOAD=LIBRARY, **settings)


def broken_pipe():
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def check(name, good, figures):
    print(f"{'ok' if good else 'FAILED'}: {name}: {figures}")
    return good


def nobody_reads(**settings):
    with os.fdopen(broken_pipe(), "wb") as pipe:
        # Python ignores SIGPIPE and would hand that on.
        done = subprocess.run(["false"], env=environment(**settings), stderr=pipe, check=False,
                              restore_signals=True)
    return check(f"nobody reads standard error, {settings}", done.returncode == 1, f"status {done.returncode}")


def number_two_is_data(**settings):
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder) / "data"
        done = subprocess.run([sys.executable, "-c", TAKES_NUMBER_TWO, data], env=environment(**settings),
                              stderr=subprocess.DEVNULL, check=False)
        content = data.read_bytes()
    return check(f"number 2 is a data file, {settings}", done.returncode == 3 and content == b"data",
                 f"status {done.returncode}, content {content[:40]}")


def is_said(**settings):
    done = subprocess.run(["false"], env=environment(**settings), stderr=subprocess.PIPE, check=False)
    return check(f"what was asked for is said, {settings}", done.returncode == 1 and b"PGHOT" in done.stderr,
                 f"{len(done.stderr)} bytes")


UNUSABLE = {"PGHOT_MODE": "nonsense"}
REPORT = {"PGHOT_REPORT": "stderr"}
NO_FILE = {"PGHOT_REPORT": "/nonexistent/report"}
results = [is_said(**UNUSABLE), is_said(**REPORT), is_said(**NO_FILE), nobody_reads(**UNUSABLE), nobody_reads(**REPORT),
           number_two_is_data(**REPORT), number_two_is_data(**NO_FILE)]
sys.exit(0 if all(results) else 1)
