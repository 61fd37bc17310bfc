# SPDX-License-Identifier: Apache-2.0
"""While a program is sampled it has what its limits allow and what its rights were, and memory that may not be
overcommitted is enough for it."""
import json
import os
import pathlib
import resource
import subprocess
import tempfile

from harness import BUILD, LIBRARY, Checks

WORK = BUILD / "tests" / "preload" / "ordinary_work"
MEMORY_LIMIT = BUILD / "tests" / "preload" / "limits" / "test_memory_limit"
OVERCOMMIT = pathlib.Path("/proc/sys/vm/overcommit_memory")
MIB = 1 << 20
LIMITS = {
    "16 descriptors": (resource.RLIMIT_NOFILE, 16),
    "no locked memory": (resource.RLIMIT_MEMLOCK, 0),
    "stacks of 128 KiB": (resource.RLIMIT_STACK, 128 << 10),
    "an address space of 512 MiB": (resource.RLIMIT_AS, 512 * MIB),
    "an address space of 64 MiB": (resource.RLIMIT_AS, 64 * MIB),
    "data of 64 MiB": (resource.RLIMIT_DATA, 64 * MIB),
}
checks = Checks()


def sampled(command, limit=None, **variables):
    environment = os.environ | {"LD_PRELOAD": str(LIBRARY), "PGHOT_START_MIN": "0", **variables}
    before_exec = (lambda: resource.setrlimit(limit[0], (limit[1], limit[1]))) if limit else None
    return subprocess.run([str(part) for part in command], env=environment, stdout=subprocess.PIPE, text=True,
                          preexec_fn=before_exec, timeout=200, check=False)


def work(name, *arguments, limit=None):
    done = sampled([WORK, *arguments], limit)
    checks.that(f"work, {name}", (done.returncode, done.stdout) == (7, "all bytes right\n"), f"{done.returncode}")


with tempfile.TemporaryDirectory() as folder:
    report = pathlib.Path(folder) / "report.json"
    sampled([WORK, 16, 1], PGHOT_REPORT=str(report))
    checks.that("the work of these checks is sampled", json.loads(report.read_text())["state"] == "stopped")
for name, limit in LIMITS.items():
    work(name, 16, 1, limit=limit)
work("calls of tiering refused by a sandbox of its own", 16, 1,
     "deny=EPERM:perf_event_open,move_pages,mbind,get_mempolicy,openat,madvise")
for limited in ("as", "data"):
    done = sampled([MEMORY_LIMIT, "--gtest_filter=*NearlyAll*:*GrowsStepByStep*"], LIMITED=limited)
    checks.that(f"nearly all of a limit ({limited}) is the program's", done.returncode == 0,
                done.stdout[-400:] if done.returncode else "")
before = OVERCOMMIT.read_text()
try:
    OVERCOMMIT.write_text("2")
    work("memory that may not be overcommitted", 200, 2)
finally:
    OVERCOMMIT.write_text(before)
checks.end()
