#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: same_answers_as_libc.py LIBRARY allocation_answers
What the malloc family answers must be the same, word for word, with and without the library."""
import difflib
import os
import subprocess
import sys

library, program = sys.argv[1:]


def answers(environment, *arguments):
    run = subprocess.run([program, *arguments], env={**os.environ, **environment}, text=True, capture_output=True,
                         timeout=60, check=False)
    if run.returncode != 0 or run.stderr:
        sys.exit(f"{program} ended with {run.returncode}: {run.stderr}")
    return run.stdout.splitlines()


plain = answers({"LD_PRELOAD": ""})
ours = answers({"LD_PRELOAD": library}, "preloaded")
if len(plain) < 500:
    sys.exit(f"only {len(plain)} answers")
different = list(difflib.unified_diff(plain, ours, "libc", "libpghot", lineterm="", n=0))
print("\n".join(different))
sys.exit(1 if different else 0)
