# SPDX-License-Identifier: Apache-2.0
"""Signals, identities, children and exec of a program are as without the library while it is sampled and its memory is
moved: nobody takes a signal from it, nothing hangs, nothing is lost."""
import os
import pathlib
import signal
import subprocess
import tempfile
import time

from harness import BUILD, Checks, LIBRARY, PERIOD, SAMPLER_CPU, check_report, run

SAMPLED_PROCESS = BUILD / "tests" / "rig" / "product" / "sampled_process"
checks = Checks()


def while_sampled(what, amount, start_min=0):
    """Tiering starts at load, in main with no signal blocked, unless `start_min` says later."""
    result, report = run([SAMPLED_PROCESS, what, amount], FREQ_THRESHOLD=1, START_MIN=start_min)
    check_report(checks, what, report)
    moved = report["counters"]["pgpromote_success"]
    checks.that(f"{what}: memory came home meanwhile", result["rounds"] >= 1 and moved > 0,
                f"{result['rounds']} regions, {moved} pages")
    return result


result = while_sampled("blocked", 4)
checks.that("signals that every thread blocks wait for sigwait, sigtimedwait and signalfd", result["received"] > 0,
            f"{result['received']} received")

result = while_sampled("handled", 4)
checks.that("timers and ends of children are handled in the program's thread, and in no other",
            result["handled"] > result["children"] > 0 and result["elsewhere"] == 0, str(result))

result = while_sampled("identities", 4)
checks.that("a change of the user reaches every thread, those of the library too",
            result["changes"] > 0 and result["users"] == 1 and result["threads"] >= 4, str(result))

result = while_sampled("forks", 500)
checks.that("500 children find their memory as it was", result["children"] == 500, str(result))

while_sampled("exec", 3)
while_sampled("small-stack", 6, start_min="32M")

ENVIRONMENT = dict(os.environ, LD_PRELOAD=str(LIBRARY), PGHOT_IBS_PERIOD=PERIOD, PGHOT_SAMPLER_CPU=SAMPLER_CPU, PGHOT_FREQ_THRESHOLD="1",
                   PGHOT_START_MIN="0")
ends = [subprocess.run([SAMPLED_PROCESS, "exit-soon", str(moment)], env=ENVIRONMENT, capture_output=True, timeout=100,
                       check=False) for moment in (*range(10), *range(10, 200, 20), 500, 1000)]
checks.that("a process may end at any moment of tiering, from any thread",
            all(end.returncode == 9 and end.stdout.startswith(b'{"rounds"') for end in ends),
            str([end.returncode for end in ends]))

with subprocess.Popen([SAMPLED_PROCESS, "blocked", "3"], env=ENVIRONMENT, stdout=subprocess.PIPE) as process:
    for _ in range(10):
        time.sleep(0.3)
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.1)
        process.send_signal(signal.SIGCONT)
    output, _ = process.communicate(timeout=200)
checks.that("a process that is stopped and continued while sampled goes on",
            process.returncode == 0 and b"received" in output, str(output))

with tempfile.TemporaryDirectory() as folder:
    subprocess.run([SAMPLED_PROCESS, "no-environment", "5"], stdout=subprocess.DEVNULL, timeout=300, check=True,
                   env={**ENVIRONMENT, "OMPI_COMM_WORLD_RANK": "3", "PGHOT_REPORT": f"{folder}/rank%r-%p.json"})
    names = sorted(path.name for path in pathlib.Path(folder).iterdir())
checks.that("a child reports under its rank when the environment is gone", len(names) == 2 and
            all(name.startswith("rank3-") for name in names), str(names))
checks.end()
