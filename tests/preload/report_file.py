#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: report_file.py LIBRARY
Where PGHOT_REPORT goes: a relative name is meant from where the program was started, whatever folder it ends in; and when
no thread can be had to write it, that is said."""
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

LIBRARY = sys.argv[1]
LEAVES_ITS_FOLDER = "import os; os.chdir('/proc')"
NOBODY = 65534
failed = 0


def check(name, good, figures):
    global failed
    print(f"{'ok' if good else 'FAILED'}: {name}: {figures}")
    failed += not good


def run(command, folder, **options):
    environment = dict(os.environ, LD_PRELOAD=LIBRARY, PGHOT_REPORT="report.json")
    return subprocess.run(command, env=environment, cwd=folder, stderr=subprocess.PIPE, check=False, **options)


def may_start_no_thread():
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))


with tempfile.TemporaryDirectory() as folder:
    done = run([sys.executable, "-c", LEAVES_ITS_FOLDER], folder)
    check("a relative name is meant from the start", (pathlib.Path(folder) / "report.json").exists(),
          f"status {done.returncode}, {os.listdir(folder)}, {done.stderr}")
with tempfile.TemporaryDirectory() as folder:
    # With the library from a folder that anybody may read.
    copy = pathlib.Path(folder) / "libpghot.so"
    copy.write_bytes(pathlib.Path(LIBRARY).read_bytes())
    LIBRARY = str(copy)
    os.chmod(folder, 0o777)
    copy.chmod(0o755)
    if os.getuid() != 0:
        print("skipped: only root can become somebody who may start no thread")
    else:
        done = run(["false"], folder, preexec_fn=may_start_no_thread)
        check("without a thread the missing report is said", done.returncode == 1 and b"PGHOT_REPORT" in done.stderr,
              f"status {done.returncode}, {done.stderr}")
sys.exit(failed)
