# SPDX-License-Identifier: Apache-2.0
"""What the product's tests on the emulated machine share: runs a program under the library, reads the program's JSON and
the library's report, checks, counts."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("RIG_BUILD", ROOT / "build" / "release"))
LIBRARY = BUILD / "libpghot.so"
TIER_BENCH = BUILD / "tests" / "bench" / "tier_bench"
WORKLOAD = BUILD / "tests" / "rig" / "product" / "workload"
SOAK = BUILD / "tests" / "preload" / "soak" / "soak"
# About the published 2,115 samples a second and CPU: see tests/rig/README.md.
PERIOD = os.environ.get("RIG_IBS_PERIOD", "2048")
# The emulator makes a sample some ten times as dear as it is: by default the library would take fewer.
SAMPLER_CPU = "100"


class Checks:
    def __init__(self):
        self.failed = 0

    def that(self, name, good, figures=""):
        print(f"{'ok' if good else 'FAILED'}: {name}{': ' if figures else ''}{figures}", flush=True)
        self.failed += not good

    def end(self):
        sys.exit(1 if self.failed else 0)


def vmstat(name):
    for line in pathlib.Path("/proc/vmstat").read_text().splitlines():
        if line.startswith(name + " "):
            return int(line.split()[1])
    return 0


def library_environment(report, **settings):
    """For a program under the library, with `settings` less their PGHOT_."""
    environment = os.environ | {"LD_PRELOAD": str(LIBRARY), "PGHOT_REPORT": str(report), "PGHOT_IBS_PERIOD": PERIOD,
                                "PGHOT_SAMPLER_CPU": SAMPLER_CPU}
    return environment | {f"PGHOT_{name}": str(value) for name, value in settings.items()}


def run(command, preload=True, **settings):
    """The program's JSON, and the library's report (None without the library)."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        environment = library_environment(report, **settings) if preload else dict(os.environ)
        done = subprocess.run([str(part) for part in command], env=environment, stdout=subprocess.PIPE, text=True,
                              timeout=300, check=True)
        return json.loads(done.stdout), json.loads(report.read_text()) if preload else None


def bench(*arguments, **settings):
    return run([TIER_BENCH, *arguments], **settings)


def share(pages, node):
    return pages.get(str(node), 0) / max(1, sum(pages.values()))


def check_report(checks, name, report):
    wrong = [equation for equation, holds in report["identities"].items() if not holds]
    checks.that(f"{name}: every identity holds", not wrong, "; ".join(wrong))
    checks.that(f"{name}: the engine ran", report["state"] == "stopped" and report["source"]["name"] == "ibs",
                f"{report['state']}, {report['source']['name']}: {report['source']['reason']}")
