#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: beside_another_allocator.py LIBRARY OTHER PROGRAM...
Each program runs with both allocators preloaded, in either order. Exit 77 where OTHER is not installed. What OTHER does
not do alone is not asked of it before us."""
import os
import subprocess
import sys

library, other, *programs = sys.argv[1:]


def run(program, preload):
    return subprocess.run([program], env={**os.environ, "LD_PRELOAD": preload}, capture_output=True, text=True,
                          timeout=60, check=False)


def says_right(program, preload):
    done = run(program, preload)
    if (done.returncode, done.stdout, done.stderr) == (0, "right\n", ""):
        return True
    print(f"{program} with LD_PRELOAD={preload}: {done.returncode}\n{done.stdout}{done.stderr}")
    return False


def both_orders(program):
    behind = says_right(program, f"{library}:{other}")
    before = says_right(program, f"{other}:{library}") or not says_right(program, other)
    return behind and before


if "cannot be preloaded" in run("true", other).stderr:
    print(f"{other} is not installed")
    sys.exit(77)
sys.exit(0 if all([both_orders(program) for program in programs]) else 1)
