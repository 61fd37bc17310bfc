# SPDX-License-Identifier: Apache-2.0
"""PGHOT_RATE_LIMIT_MBPS: over any five seconds with work what is moved is the budget to 5 %, and since the
first move never more than a batch above it."""
from harness import Checks, bench, check_report

MIB = 1 << 20
WANTED_S = 5
checks = Checks()

# A period low enough that evidence is never what the mover waits for: the more memory, the more samples that takes.
for budget, size, accesses, period in ((8, "128M", "20M", 2048), (32, "384M", "25M", 1024), (128, "1280M", "40M", 256)):
    result, report = bench("--threads", 1, "--cpu-node", 0, "--memory-node", 2, "--bytes", size, "--accesses", accesses,
                           "--pattern", "uniform", FREQ_THRESHOLD=1, RATE_LIMIT_MBPS=budget, IBS_PERIOD=period)
    check_report(checks, f"{budget} MB/s", report)
    batch = min(max(budget * MIB // 10, 512 * 4096), 2048 * 4096)    # a moving call: 100 ms of the budget, one to four chunks
    rows = report["seconds"]
    moved = [row.get("promoted_bytes", 0) for row in rows]
    times = [rows[0]["ms"]] + [after["ms"] - before["ms"] for before, after in zip(rows, rows[1:])]
    # Work is there from the second after the first moves to the second before the last.
    busy = [i for i, each in enumerate(moved) if each > 0]
    first, last = busy[0] + 1, busy[-1] - 1
    seconds = sum(times[first:last + 1]) / 1000
    rate = sum(moved[first:last + 1]) / MIB / seconds if seconds else 0
    checks.that(f"{budget} MB/s: work for at least {WANTED_S} s", seconds >= WANTED_S, f"{seconds:.1f} s")
    # A host whose moves alone take two thirds of the time or more cannot keep up with the budget: too little is not judged.
    speed = report["counters"]["promoted_bytes"] / MIB / (report["counters"]["move_ns"] / 1e9)
    too_slow = speed < 1.5 * budget and rate < budget
    checks.that(f"{budget} MB/s: within 5 %", too_slow or abs(rate - budget) <= 0.05 * budget,
                f"{rate:.2f} MB/s over {seconds:.1f} s" + (f"; not judged: this host moves {speed:.0f} MB/s at most" if too_slow else ""))
    # From the row before the first move on; rows carry milliseconds, so a row's end is known to 1 ms.
    over = max(sum(moved[busy[0]:end]) - budget * MIB * (sum(times[busy[0]:end]) + 1) / 1000 for end in range(busy[0] + 1, len(rows) + 1))
    checks.that(f"{budget} MB/s: never more than a batch above since the first move", over <= batch, f"{over / MIB:+.2f} MiB")
    windows = [(begin, end) for begin in range(len(rows)) for end in range(begin + 1, len(rows) + 1)
               if sum(times[begin:end]) >= WANTED_S * 1000]
    # The edges of a window cut a batch; 2 % for the clock of the rows.
    over = max(sum(moved[begin:end]) - 1.02 * budget * MIB * sum(times[begin:end]) / 1000 for begin, end in windows)
    checks.that(f"{budget} MB/s: no five seconds more than a batch above", over <= batch, f"{over / MIB:+.2f} MiB")
checks.end()
