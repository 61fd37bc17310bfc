# SPDX-License-Identifier: Apache-2.0
"""Prints results: a table a workload, one of its phases where that says more, and the verdicts."""
import statistics

from results import median
from workload_list import NUMAB0

PACE_LIMIT = 1.2    # wall over modelled time of NUMAB0: above it the host does not keep up with the model


def aligned(rows):
    """Lines of the rows' cells: the first column to the left, the others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths)))
            .rstrip() for row in rows]


def spread(values):
    """median (min-max)"""
    values = [value for value in values if value is not None]
    if not values:
        return "-"
    texts = ["never" if value == float("inf") else f"{value:.2f}" for value in (statistics.median(values), min(values), max(values))]
    return f"{texts[0]} ({texts[1]}-{texts[2]})"


def number(value, digits=0):
    return "-" if value is None else f"{value:.{digits}f}"


COLUMNS = (
    ("modelled s", lambda runs: spread([run.modelled_s for run in runs])),
    ("wall s", lambda runs: spread([run.wall_s for run in runs])),
    ("up", lambda runs: number(median([run.up for run in runs]))),
    ("down", lambda runs: number(median([run.down for run in runs]))),
    ("moved", lambda runs: number(median([run.moved for run in runs]))),
    ("repeated", lambda runs: number(median([run.repeated for run in runs]))),
    ("useful", lambda runs: number(median([run.useful for run in runs]))),
    ("wasted", lambda runs: number(median([run.wasted for run in runs]))),
    ("sampler s", lambda runs: number(median([run.sampler_s for run in runs]), 2)),
    ("mover s", lambda runs: number(median([run.mover_s for run in runs]), 2)),
    ("90 % local s", lambda runs: spread([run.local_s for run in runs])),
)


def workload_rows(workload, results):
    rows = [("configuration", *(heading for heading, _ in COLUMNS), "x NUMAB0")]
    for name in results.configurations(workload.name):
        runs = results.of(workload.name, name)
        against = results.speed_up(workload.name, NUMAB0.name, name, lambda run: run.modelled_s)
        rows.append((name, *(text(runs) for _, text in COLUMNS), number(against, 2)))
    return rows


def phase_rows(workload, results):
    """A row a phase: modelled / wall seconds, medians."""
    names = results.configurations(workload.name)
    rows = [("phase", *names)]
    phases = list(results.of(workload.name, names[0])[0].phases)
    for phase in phases:
        cells = []
        for name in names:
            runs = [run.phases[phase] for run in results.of(workload.name, name)]
            times = [median([run[key] and run[key] / 1e6 for run in runs]) for key in ("modelled_us", "wall_us")]
            cells.append(" / ".join(number(time, 2) for time in times))
        rows.append((phase, *cells))
    return rows


def pace(workload, results):
    """Wall over modelled time without promotion; None where that was not run."""
    return median([run.wall_s / run.modelled_s for run in results.of(workload.name, NUMAB0.name) if run.modelled_s])


def print_workload(workload, results):
    print(f"\n{workload.name}: {workload.what}")
    for line in aligned(workload_rows(workload, results)):
        print(line)
    if workload.by_phase:
        print("phases, modelled s / wall s")
        for line in aligned(phase_rows(workload, results)):
            print(line)
    rates = [f"{name}: {median([run.move_rate_mib for run in results.of(workload.name, name)]):.2f} MiB/s"
             for name in results.configurations(workload.name)
             if median([run.move_rate_mib for run in results.of(workload.name, name)]) is not None]
    if rates:
        print("moved while there was work: " + "; ".join(rates))
    now = pace(workload, results)
    if now:
        print(f"pace: NUMAB0 takes {now:.2f} x its modelled time on this host"
              + ("" if now <= PACE_LIMIT else f" (above {PACE_LIMIT} whoever moves pages, by the clock, is ahead of the model's time)"))
    if workload.same_result and results.disagreement(workload.name):
        print(f"RESULTS DIFFER: {sorted(map(str, results.disagreement(workload.name)))}")


def print_verdicts(verdicts):
    print("\ntargets, judged on medians")
    rows = [("target", "limit", "value", "verdict"), *((each.what, each.limit, each.value, each.verdict) for each in verdicts)]
    for line in aligned(rows):
        print(line)
