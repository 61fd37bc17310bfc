# SPDX-License-Identifier: Apache-2.0
"""PGHOT_RATE_LIMIT_MBPS: what is moved in a second is the budget while there is work, and never more than a batch above."""
from harness import Checks, bench, check_report

MIB = 1 << 20
BATCH = 512 * 4096    # PGHOT_MIGRATE_BATCH of base pages, the default
WANTED_S = 5
checks = Checks()

for budget, size, accesses in ((8, "128M", "20M"), (32, "384M", "30M"), (128, "1280M", "60M")):
    result, report = bench("--threads", 1, "--cpu-node", 0, "--memory-node", 2, "--bytes", size, "--accesses", accesses,
                           "--pattern", "uniform", FREQ_THRESHOLD=1, RATE_LIMIT_MBPS=budget)
    check_report(checks, f"{budget} MB/s", report)
    rows = report["seconds"]
    moved = [row.get("promoted_bytes", 0) for row in rows]
    times = [rows[0]["ms"]] + [after["ms"] - before["ms"] for before, after in zip(rows, rows[1:])]
    # Work is there from the second after the first moves to the second before the last.
    busy = [i for i, each in enumerate(moved) if each > 0]
    first, last = busy[0] + 1, busy[-1] - 1
    seconds = sum(times[first:last + 1]) / 1000
    rate = sum(moved[first:last + 1]) / MIB / seconds if seconds else 0
    checks.that(f"{budget} MB/s: work for at least {WANTED_S} s", seconds >= WANTED_S, f"{seconds:.1f} s")
    checks.that(f"{budget} MB/s: within 5 %", abs(rate - budget) <= 0.05 * budget, f"{rate:.2f} MB/s over {seconds:.1f} s")
    worst = 0
    for begin in range(len(rows)):
        for end in range(begin, len(rows)):
            allowed = budget * MIB * sum(times[begin:end + 1]) / 1000 + BATCH
            worst = max(worst, sum(moved[begin:end + 1]) - allowed)
    # Rows carry milliseconds: a row's end is known to 1 ms.
    checks.that(f"{budget} MB/s: never more than a batch above", worst <= budget * MIB / 1000, f"{worst / MIB:.3f} MiB over")
checks.end()
