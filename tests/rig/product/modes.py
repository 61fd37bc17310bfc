# SPDX-License-Identifier: Apache-2.0
"""The settings that change what is done with samples: observe, a fixed target, targets in turn, the budget's sleep, a
recording and its replay, one page's scope, slow loads only."""
import pathlib
import tempfile

from harness import Checks, bench, check_report, share

checks = Checks()
SMALL = ("--threads", 1, "--cpu-node", 0, "--memory-node", 2, "--accesses", "6M", "--bytes", "64M", "--pattern", "uniform")

result, report = bench(*SMALL, FREQ_THRESHOLD=1, MODE="observe")
counters = report["counters"]
checks.that("observe moves nothing", share(result["pages_per_node"], 2) == 1 and counters["move_calls"] == 0,
            str(result["pages_per_node"]))
checks.that("observe says what would have moved",
            counters["pgpromote_candidate"] == counters["pages_observed"] >= 0.95 * 16384, f"{counters['pages_observed']} pages")
check_report(checks, "observe", report)

result, report = bench(*SMALL, FREQ_THRESHOLD=1, TARGET_NID=1)
checks.that("PGHOT_TARGET_NID=1 brings pages to node 1, whoever calls", share(result["pages_per_node"], 1) >= 0.95,
            str(result["pages_per_node"]))
check_report(checks, "target 1", report)

result, report = bench(*SMALL, FREQ_THRESHOLD=1, TARGET_NID="alternate")
checks.that("PGHOT_TARGET_NID=alternate deals them out to both DRAM nodes",
            all(0.4 <= share(result["pages_per_node"], node) <= 0.6 for node in (0, 1)), str(result["pages_per_node"]))
check_report(checks, "alternate", report)

result, report = bench(*SMALL, "--memory", "mmap", FREQ_THRESHOLD=1, SCOPE="heap")
checks.that("PGHOT_SCOPE=heap leaves a mapping of the program alone", share(result["pages_per_node"], 2) == 1,
            str(result["pages_per_node"]))
check_report(checks, "scope heap", report)

result, report = bench(*SMALL, FREQ_THRESHOLD=1, IBS_LDLAT=600)
counters = report["counters"]
checks.that("PGHOT_IBS_LDLAT samples no stores, and pages come home all the same",
            counters["hwhint_nolevel_accesses"] == 0 and share(result["pages_per_node"], 0) >= 0.95,
            f"{result['pages_per_node']}, {counters['hwhint_useful_events']} samples, {counters['hwhint_nolevel_accesses']} of stores")
check_report(checks, "slow loads", report)

with tempfile.TemporaryDirectory() as folder:
    recording = pathlib.Path(folder) / "run.rec"
    result, first = bench(*SMALL, FREQ_THRESHOLD=1, RECORD=recording)
    checks.that("a recorded run is a run like any other", share(result["pages_per_node"], 0) >= 0.95,
                f"{result['pages_per_node']}, recording of {recording.stat().st_size} bytes")
    result, replayed = bench("--threads", 1, "--cpu-node", 0, "--memory-node", 2, "--accesses", "12M", "--bytes", "64M", "--pattern",
                             "uniform", FREQ_THRESHOLD=1, SOURCES=f"replay:{recording}")
    checks.that("a replay plans what the recorded run planned, and moves nothing",
                replayed["source"]["name"] == "replay" and share(result["pages_per_node"], 2) == 1 and
                replayed["counters"]["pages_by_chunk_rule"] >= 0.9 * first["counters"]["pages_by_chunk_rule"],
                f"{replayed['counters']['pages_by_chunk_rule']} pages in chunks, recorded run "
                f"{first['counters']['pages_by_chunk_rule']}, {replayed['counters']['hwhint_total_events']} samples of "
                f"{first['counters']['hwhint_total_events']}")
checks.end()
