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
checks.end()
