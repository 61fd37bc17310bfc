# SPDX-License-Identifier: Apache-2.0
"""Short forms of some of the benchmark's workloads (tests/bench/workloads): where the pages end, and that the counters add
up. Nothing here is timed."""
import sys

from harness import BUILD, PERIOD, ROOT, Checks, check_report

sys.path.insert(0, str(ROOT / "tests" / "bench" / "tiering"))
from figures import Figures  # noqa: E402  (the folder is known only now)
from runs import Build, Runner  # noqa: E402
from workload_list import LIBPGHOT, WORKLOADS  # noqa: E402

HOME = 0.95
BY_NAME = {workload.name: workload for workload in WORKLOADS}
checks = Checks()
runner = Runner(Build(BUILD), {"FREQ_THRESHOLD": "1", "IBS_PERIOD": PERIOD, "SAMPLER_CPU": "100"}, quick=True)


def short(name):
    """The workload's figures under libpghot, its reports checked; None, counted as a failure, when it cannot run."""
    workload = BY_NAME[name]
    reason = runner.why_not(workload, LIBPGHOT)
    if reason:
        checks.that(f"{name}: can run", False, reason)
        return None
    run = runner.run(workload, LIBPGHOT)
    for number, report in enumerate(run.reports):
        check_report(checks, f"{name}, process {number}" if workload.ranks else name, report)
    return Figures(run, workload.hot_sets)


def check_local(name, figures, sets):
    for each in (figures.set(one) for one in sets):
        checks.that(f"{name}: {each['name']} came home", each["local_pages"] >= HOME * each["pages"],
                    f"{each['local_pages']} of {each['pages']} watched pages")


for name in ("uniform-128", "hot-set", "two-groups", "uniform-huge", "ranks-2", "ranks-4"):
    figures = short(name)
    if figures is None:
        continue
    check_local(name, figures, BY_NAME[name].hot_sets)
    checks.that(f"{name}: pages were moved", figures.up > 0, f"{figures.up} up, {figures.moved} by the kernel's count")
    if name == "two-groups":
        shared = figures.set("shared")
        checks.that("two-groups: no shared page moves more than twice", shared["moved_pages"][3] == 0, str(shared))
    if name == "uniform-huge":
        # Both counts are of the same time; the pages' places are asked a little later.
        whole = figures.whole_huge_pages
        checks.that("uniform-huge: huge pages move whole", whole > 0 and whole * 512 == figures.moved,
                    f"{whole} huge pages, {figures.moved} pages")
checks.end()
