# SPDX-License-Identifier: Apache-2.0
"""pghot doctor on a machine that has a lower tier and IBS: what it finds, and what it asks for where it is refused."""
import json
import pathlib
import subprocess

from harness import BUILD, Checks

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
checks = Checks()


def doctor(*, prefix=(), paranoid=2):
    pathlib.Path("/proc/sys/kernel/perf_event_paranoid").write_text(str(paranoid))
    run = subprocess.run([*prefix, BUILD / "pghot", "doctor", "--json"], stdout=subprocess.PIPE, text=True, timeout=60,
                         check=False)
    return json.loads(run.stdout), run.returncode


facts, status = doctor(prefix=NOBODY)
tiers = {node["node"]: node["tier"] for node in facts["nodes"]}
checks.that("node 2 is the lower tier", tiers == {0: "top", 1: "top", 2: "lower"}, str(tiers))
checks.that("the kernel's memory tiers told so", facts["tiers_told_by"] == "memory tier", facts["tiers_told_by"])
checks.that("IBS opens without privilege", facts["ibs"]["works"] and facts["ibs"]["swfilt"], facts["ibs"]["advice"])
checks.that("the PMU has the latency filter", facts["ibs"]["ldlat"])
checks.that("hot pages would move", (facts["verdict"], status) == ("tiers", 0), f"{facts['verdict']}, exit {status}")

facts, status = doctor(prefix=NOBODY, paranoid=3)
checks.that("Debian's perf_event_paranoid=3 refuses and is named",
            not facts["ibs"]["works"] and "perf_event_paranoid=2" in facts["ibs"]["advice"], facts["ibs"]["advice"])
checks.that("then nothing would move", (facts["verdict"], status) == ("no source", 1), f"{facts['verdict']}, exit {status}")

facts, status = doctor(paranoid=3)
checks.that("root may sample all the same", facts["ibs"]["works"] and status == 0, facts["ibs"]["advice"])

pathlib.Path("/proc/sys/kernel/numa_balancing").write_text("2")
checks.that("the kernel's own promotion is seen", doctor()[0]["numa_balancing"] == 2)
checks.end()
