# SPDX-License-Identifier: Apache-2.0
"""The program's descriptors are its own while it is sampled, and a process ends as it would without the library."""
from harness import Checks, WORKLOAD, check_report, run, share

checks = Checks()
plain, _ = run([WORKLOAD, "descriptors", 3], preload=False)
result, report = run([WORKLOAD, "descriptors", 15], FREQ_THRESHOLD=1, START_MIN=0)
checks.that("the same descriptors with and without the library", plain["before"] == result["before"],
            f"{plain['before']} / {result['before']}")
checks.that("the same descriptors while sampling", result["during"] == result["before"], result["during"])
checks.that("a program that closes every descriptor keeps being sampled", share(result["hot"], 0) >= 0.95,
            f"{result['hot']}, {report['counters']['hwhint_total_events']} samples")
check_report(checks, "descriptors", report)

result, report = run([WORKLOAD, "last-thread", 10], FREQ_THRESHOLD=1, START_MIN=0)
checks.that("a process whose main has left ends with its last thread, its output complete", share(result["hot"], 0) >= 0.95,
            str(result))
check_report(checks, "last thread", report)
# Pages that a child shares cannot move: they are asked about ever more seldom, and come home after it.
result, report = run([WORKLOAD, "fork", 60], FREQ_THRESHOLD=1, START_MIN=0)
counters = report["counters"]
pages = sum(result["shared"].values())
checks.that("pages stay while a forked child shares them", share(result["shared"], 2) >= 0.95, str(result))
checks.that("and come home when it has gone", share(result["alone"], 0) >= 0.95, str(result))
checks.that("until then few were tried", pages <= counters["pgpromote_fail_access"] <= 3 * pages,
            f"{counters['pgpromote_fail_access']} refused, of {pages} pages")
check_report(checks, "fork", report)

# Someone else moves pages: what the library knew of their place is put right by what it samples.
result, report = run([WORKLOAD, "foreign", 60], FREQ_THRESHOLD=1, START_MIN=0)
counters = report["counters"]
checks.that("a region comes home", share(result["first"], 0) >= 0.95, str(result))
checks.that("another process pushes it down", share(result["pushed"], 2) >= 0.95, str(result))
checks.that("and it comes home again", share(result["again"], 0) >= 0.95, str(result))
check_report(checks, "foreign", report)
checks.end()
