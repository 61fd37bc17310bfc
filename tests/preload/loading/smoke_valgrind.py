#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: smoke_valgrind.py LIBRARY OVERRUN
Under valgrind's memcheck, which replaces malloc in every library, a program is clean without its overrun and found out
with it. Exit 77 where valgrind is not installed or does not do this without the library."""
import os
import shutil
import subprocess
import sys

library, program = sys.argv[1:]
FOUND = 9


def verdict(preload, *arguments):
    command = ["valgrind", "-q", f"--error-exitcode={FOUND}", "--leak-check=no", program, *arguments]
    return subprocess.run(command, env={**os.environ, "LD_PRELOAD": preload}, capture_output=True, text=True,
                          timeout=100, check=False)


if shutil.which("valgrind") is None:
    print("valgrind is not installed")
    sys.exit(77)
if (verdict("").returncode, verdict("", "overrun").returncode) != (0, FOUND):
    print("valgrind does not work here")
    sys.exit(77)
clean, overrun = verdict(library), verdict(library, "overrun")
if (clean.returncode, clean.stdout, overrun.returncode) == (0, "right\n", FOUND):
    sys.exit(0)
print(clean.returncode, clean.stdout, clean.stderr, overrun.returncode, overrun.stderr, sep="\n")
sys.exit(1)
