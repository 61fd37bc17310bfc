# SPDX-License-Identifier: Apache-2.0
"""The targets, as data: what is compared, with which limit; and the verdict on the medians of a run."""
from dataclasses import dataclass
from typing import Callable

from workload_list import DRAM, FIXED, LIBPGHOT, NUMAB0, NUMAB2

REPETITIONS = 5    # of inference, where all are run


def modelled(figures):
    return figures.modelled_s


def phase_time(name):
    """Modelled seconds of one phase; None in a run without it."""
    def read(figures):
        phase = figures.phases.get(name)
        return None if phase is None or phase["modelled_us"] is None else phase["modelled_us"] / 1e6
    return read


@dataclass(frozen=True)
class Target:
    what: str
    limit: float
    at_least: bool                      # else at most
    value: Callable                     # Results -> number, or None when it was not run
    unit: str = "x"                     # "x" a ratio, "%" a share, "" a count


@dataclass(frozen=True)
class Verdict:
    what: str
    limit: str
    value: str
    verdict: str


def faster(workload, base):
    return lambda results: results.speed_up(workload, base.name, LIBPGHOT.name, modelled)


def slower(workload, base):
    """Times of libpghot over those of the base."""
    return lambda results: results.speed_up(workload, LIBPGHOT.name, base.name, modelled)


def until_local(workload):
    def value(results):
        kernel = results.median(workload, NUMAB2.name, lambda figures: _at_most_the_run(figures))
        ours = results.median(workload, LIBPGHOT.name, lambda figures: figures.local_s)
        return None if kernel is None or ours is None else ours / kernel
    return value


def _at_most_the_run(figures):
    """A set that was not local in time took at least the run: what is divided by must not be infinite."""
    return None if figures.local_s is None else min(figures.local_s, figures.wall_s)


def moves_against_kernel(workload):
    def value(results):
        kernel = results.median(workload, NUMAB2.name, lambda figures: figures.moved)
        ours = results.median(workload, LIBPGHOT.name, lambda figures: figures.moved)
        return None if ours is None or not kernel else ours / kernel
    return value


def share_local(workload, sets):
    """The worst set's share of local pages at the end."""
    def of_run(figures):
        found = [figures.set(name) for name in sets]
        return None if None in found else min(each["local_pages"] / each["pages"] for each in found)
    return lambda results: results.median(workload, LIBPGHOT.name, of_run)


def moved_more_than_twice(workload, name):
    def of_run(figures):
        found = figures.set(name)
        return None if found is None else found["moved_pages"][3]
    return lambda results: results.median(workload, LIBPGHOT.name, of_run)


def promoted_twice(workload):
    return lambda results: results.median(workload, LIBPGHOT.name,
                                          lambda figures: sum(each["promoted_twice"] for each in figures.all_sets))


def churn(workload):
    """Of libpghot's moves, those that were not the only one of their page."""
    return lambda results: results.median(workload, LIBPGHOT.name,
                                          lambda figures: figures.repeated / figures.moved if figures.moved else 0.0)


def moved_share(workload, pages):
    return lambda results: results.median(workload, LIBPGHOT.name, lambda figures: figures.moved / pages)


def cost_share(workload, prefix):
    return lambda results: results.median(workload, LIBPGHOT.name, lambda figures: figures.tiering_share(prefix))


def speed_left(workload, prefix):
    """Of a phase that the emulator cannot pace: its clock time over that and the costs of tiering."""
    def value(results):
        share = cost_share(workload, prefix)(results)
        return None if share is None else 1 / (1 + share)
    return value


def worst_decode(results):
    names = [f"decode {i}" for i in range(1, REPETITIONS + 1)]
    ratios = [results.speed_up("inference", NUMAB2.name, LIBPGHOT.name, phase_time(name)) for name in names]
    ratios = [each for each in ratios if each is not None]
    return min(ratios, default=None)


def budget_error(workload, mib_per_s, least_seconds=10):
    """How far the rate of moves is from the budget; None when there was not work for so long."""
    def of_run(figures):
        rate = figures.move_rate_mib
        return None if rate is None or figures.busy_seconds < least_seconds else abs(rate / mib_per_s - 1)
    return lambda results: results.median(workload, LIBPGHOT.name, of_run)


TARGETS = (
    Target("uniform-128: against NUMAB2", 1.3, True, faster("uniform-128", NUMAB2)),
    Target("uniform-512: against NUMAB2", 1.3, True, faster("uniform-512", NUMAB2)),
    Target("uniform-long: time against DRAM from the start", 1.10, False, slower("uniform-long", DRAM)),
    Target("uniform-128: until 90 % are local, of NUMAB2's time", 0.5, False, until_local("uniform-128")),
    Target("uniform-512: until 90 % are local, of NUMAB2's time", 0.5, False, until_local("uniform-512")),
    Target("hot-set: until 90 % are local, of NUMAB2's time", 0.5, False, until_local("hot-set")),
    Target("graph: pages moved, of NUMAB2's", 0.5, False, moves_against_kernel("graph")),
    Target("graph: against NUMAB2", 1.0, True, faster("graph", NUMAB2)),
    Target("graph-ranks: pages moved, of NUMAB2's", 0.5, False, moves_against_kernel("graph-ranks")),
    Target("graph-ranks: against NUMAB2", 1.0, True, faster("graph-ranks", NUMAB2)),
    Target("two-groups: private pages where they are used", 0.95, True,
           share_local("two-groups", ("private 0", "private 1")), "%"),
    Target("two-groups: watched shared pages that moved more than twice", 0, False,
           moved_more_than_twice("two-groups", "shared"), ""),
    Target("stencil: caller's node against node 0", 1.3, True, faster("stencil", FIXED)),
    Target("stencil: watched pages promoted twice", 0, False, promoted_twice("stencil"), ""),
    Target("zipf: against NUMAB2 with demotion", 1.2, True, faster("zipf", NUMAB2)),
    Target("zipf: churn, of the moves", 0.05, False, churn("zipf"), "%"),
    Target("stream: pages moved, of those streamed over", 0.01, False, moved_share("stream", 65536), "%"),
    Target("stream: time of that phase against NUMAB0", 1.02, False,
           lambda results: results.speed_up("stream", LIBPGHOT.name, NUMAB0.name, phase_time("stream"))),
    Target("stream: costs of tiering while it computes, of the time", 0.02, False, cost_share("stream", "compute"), "%"),
    Target("inference: decode against NUMAB2, worst repetition", 1.0, True, worst_decode),
    Target("inference: prefill against no tiering", 0.97, True, speed_left("inference", "prefill")),
    Target("budget-1: off the budget over 10 s and more", 0.02, False, budget_error("budget-1", 16), "%"),
    Target("budget-4: off the budget, four ranks together", 0.03, False, budget_error("budget-4", 16), "%"),
)


def _text(value, unit):
    return {"x": f"{value:.3f}", "%": f"{value:.2%}", "": f"{value:.0f}"}[unit]


def missed_by(value, limit, at_least):
    """How far the value is from the limit, of the limit; absolute where that is 0."""
    distance = limit - value if at_least else value - limit
    return distance / limit if limit else distance


def judge(target, results):
    limit = f"{'>=' if target.at_least else '<='} {_text(target.limit, target.unit)}"
    value = target.value(results)
    if value is None:
        return Verdict(target.what, limit, "-", "not run")
    met = value >= target.limit if target.at_least else value <= target.limit
    if met:
        return Verdict(target.what, limit, _text(value, target.unit), "met")
    distance = missed_by(value, target.limit, target.at_least)
    by = f"{distance:.1%}" if target.limit else f"{distance:.0f}"
    return Verdict(target.what, limit, _text(value, target.unit), f"missed by {by}")


def verdicts(results):
    return [judge(target, results) for target in TARGETS]
