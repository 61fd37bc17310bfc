# SPDX-License-Identifier: Apache-2.0
"""More memory than DRAM has room for: cold pages make room for hot ones, a limit is kept, nothing is lost."""
import pathlib

import hog
from harness import Checks, WORKLOAD, bench, check_report, run, share, vmstat

MIB = 1 << 20
PAGE = 4096
checks = Checks()
pathlib.Path("/sys/kernel/mm/numa/demotion_enabled").write_text("0", encoding="ascii")    # what goes down is our doing


def on_dram(pages):
    return pages.get("0", 0) + pages.get("1", 0)


def moves_of(report):
    names = ("pgpromote_candidate", "pgpromote_success", "pgpromote_fail_nomem", "pgdemote_candidate", "pgdemote_success", "hwhint_extmem_accesses")
    return ", ".join(f"{name} {report['counters'][name]}" for name in names)


def check_moves(name, report, migrated):
    counters = report["counters"]
    up, down = counters["pgpromote_success"], counters["pgdemote_success"]
    checks.that(f"{name}: what was counted, the kernel moved", up + down <= migrated, f"{up} up, {down} down, {migrated} migrated")
    checks.that(f"{name}: few pages go to and fro", counters["pages_ping_pong"] <= (up + down) / 20,
                f"{counters['pages_ping_pong']} of {up + down}; paid {counters['promotions_paid']}, wasted {counters['promotions_wasted']}")
    check_report(checks, name, report)


# A limit below the size of the program, with more free memory than it needs.
LIMIT = 48 * MIB
before = vmstat("pgmigrate_success")
result, report = bench("--pattern", "zipf", "--bytes", "96M", "--accesses", "16M", "--memory-node", 2, FREQ_THRESHOLD=1, DRAM_LIMIT=LIMIT)
pages = result["pages_per_node"]
checks.that("limit: kept, and used", 0.7 * LIMIT <= on_dram(pages) * PAGE <= LIMIT, f"{on_dram(pages) * PAGE / MIB:.1f} MiB of {LIMIT / MIB:.0f}")
checks.that("limit: every page is somewhere", sum(pages.values()) == 96 * MIB / PAGE, str(pages))
check_moves("limit", report, vmstat("pgmigrate_success") - before)

# Memory that lies in DRAM beyond the limit, never to be used again.
LIMIT = 24 * MIB
result, report = run([WORKLOAD, "crowded", 90, LIMIT // PAGE], FREQ_THRESHOLD=1, START_MIN=0, DRAM_LIMIT=LIMIT)
checks.that("beyond the limit: hot memory comes home", share(result["hot"], 0) >= 0.9, str(result))
checks.that("beyond the limit: cold memory goes down", (on_dram(result["hot"]) + on_dram(result["cold"])) * PAGE <= LIMIT, str(result))
check_report(checks, "beyond the limit", report)

# Nodes that others keep full. Beside the headroom (here the low watermark, 54 MiB, and a batch) and what else a process
# needs there is room for the cold memory and little more.
hog.fill(1, 30 * MIB)
hog.fill(0, (62 + 5 + 48) * MIB)
result, report = run([WORKLOAD, "crowded", 90, 1 << 20], FREQ_THRESHOLD=1, START_MIN=0)
checks.that("full node: hot memory comes home", on_dram(result["hot"]) * PAGE >= 0.9 * 16 * MIB,
            f"{result}; {moves_of(report)}")
checks.that("full node: cold memory made room", result["cold"].get("2", 0) >= 4 * MIB / PAGE, str(result))
check_report(checks, "full node", report)

result, report = run([WORKLOAD, "crowded", 5], FREQ_THRESHOLD=1, START_MIN=0, DEMOTE=0)
checks.that("without demotion: cold memory stays", share(result["cold"], 0) == 1, str(result))
checks.that("without demotion: nothing was demoted", report["counters"]["pgdemote_candidate"] == 0)
check_report(checks, "without demotion", report)
checks.end()
