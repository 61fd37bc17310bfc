#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: smoke_java.py LIBRARY Smoke.java
A Java program says the same with and without the library. Exit 77 where Java is missing or does not do it without."""
import os
import shutil
import subprocess
import sys
import tempfile

library, source = sys.argv[1:]
OPTIONS = ["-Xmx96m", "-Xss512k", "-XX:+UseSerialGC", "-XX:ActiveProcessorCount=2"]


def run(classes, preload):
    command = ["java", *OPTIONS, f"-XX:ErrorFile={classes}/crash", "-cp", classes, "Smoke"]
    done = subprocess.run(command, env={**os.environ, "LD_PRELOAD": preload}, capture_output=True, text=True,
                          timeout=50, check=False)
    return done.returncode, done.stdout, done.stderr


if shutil.which("java") is None or shutil.which("javac") is None:
    print("java or javac is not installed")
    sys.exit(77)
with tempfile.TemporaryDirectory() as scratch:
    subprocess.run(["javac", "-d", scratch, source], check=True)
    plain = run(scratch, "")
    if plain != (0, "sum 41740 traps 5001 child 0\n", ""):
        print("java does not work here:", plain)
        sys.exit(77)
    ours = run(scratch, library)
print(ours)
sys.exit(0 if ours == plain else 1)
