# SPDX-License-Identifier: Apache-2.0
"""Hot pages come home: to the node of the CPUs that use them, whatever kind of memory; what is bound stays."""
from harness import Checks, WORKLOAD, bench, check_report, run, share, vmstat

checks = Checks()
UNIFORM = ("--pattern", "uniform", "--bytes", "128M")


def check_home(name, arguments, wanted):
    """`wanted`: for each group of the benchmark's memory, its node."""
    before = vmstat("pgmigrate_success")
    result, report = bench(*arguments, FREQ_THRESHOLD=1)
    moved = vmstat("pgmigrate_success") - before
    for group, node in enumerate(wanted):
        pages = result["groups"][group]["pages_per_node"]
        checks.that(f"{name}: group {group} on node {node}", share(pages, node) >= 0.95, f"pages per node {pages}")
    check_report(checks, name, report)
    success = report["counters"]["pgpromote_success"]
    home = sum(count for node, count in result["pages_per_node"].items() if node in "01")
    checks.that(f"{name}: pgpromote_success is the change of placement", success == home == moved,
                f"{success} counted, {home} pages of the benchmark on DRAM nodes, {moved} migrated by the kernel")


check_home("threads on node 0", ("--threads", 1, "--cpu-node", 0, "--memory-node", 2, "--accesses", "10M", *UNIFORM), [0])
check_home("threads on node 1", ("--threads", 1, "--cpu-node", 1, "--memory-node", 2, "--accesses", "10M", *UNIFORM), [1])
check_home("two groups", ("--threads", 2, "--groups", 2, "--cpu-node", 0, "--memory-node", 2, "--accesses", "20M", *UNIFORM),
           [0, 1])
for kind in ("bss", "mmap"):
    check_home(f"memory of {kind}", ("--threads", 1, "--cpu-node", 0, "--memory-node", 2, "--accesses", "10M", "--memory", kind,
                                     *UNIFORM), [0])

result, report = run([WORKLOAD, "bound", 15], FREQ_THRESHOLD=1, START_MIN=0)
checks.that("a free region beside a bound one comes home", share(result["free"], 0) >= 0.95, str(result))
checks.that("a region that the program bound to the lower tier stays", share(result["bound"], 2) == 1, str(result))
check_report(checks, "bound", report)

# Windows of a second, as what was moved rests for eight.
for settings, home in (({"MISPLACED": 1}, 1), ({}, 0)):
    result, report = run([WORKLOAD, "misplaced", 30], FREQ_THRESHOLD=1, FREQ_WINDOW=1000, START_MIN=0, **settings)
    name = f"pages on node 0 that node 1 uses, {settings or 'nothing set'}"
    checks.that(f"{name}: on node {home}", share(result["far"], home) >= 0.95, str(result))
    moved = report["counters"]["numa_pages_migrated"]
    checks.that(f"{name}: moved once or never", moved <= 1.05 * sum(result["far"].values()) * home, f"{moved} pages moved")
    check_report(checks, name, report)

before = vmstat("thp_migration_success")
result, report = run([WORKLOAD, "huge", 15], FREQ_THRESHOLD=1, START_MIN=0)
whole = vmstat("thp_migration_success") - before
checks.that("huge pages come home whole", share(result["huge"], 0) >= 0.95 and whole >= 30,
            f"{result['huge']}, {whole} of 32 huge pages migrated whole, {report['counters']['pages_by_huge_rule']} pages by that rule")
check_report(checks, "huge", report)

result, report = run([WORKLOAD, "sweep", 45], START_MIN=0)
checks.that("a region read all the time comes home", share(result["hot"], 0) >= 0.95, str(result))
checks.that("a region swept every ten seconds stays", share(result["swept"], 2) >= 0.99 and result["sweeps"] >= 3,
            str(result))
check_report(checks, "sweep", report)
checks.end()
