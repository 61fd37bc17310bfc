# SPDX-License-Identifier: Apache-2.0
"""From figures to ratios, and from ratios to what is met and what is missed. Above 1 is faster than the base."""
import statistics
from dataclasses import dataclass

from allocators import ACTIVE, BASE, MODE_OFF, NOISE, NONE, PRODUCT, SIZE_RULES
from jobs import StartUp

EVERY_ROW = 0.97
MEAN_OF_ROWS = 1.10
LARGE_TEMPORARIES = 5.0
PEAK_MEMORY = 1.10           # at most, of the base's
SMALL_UNDER_RULES = 0.97
PLACED_LARGE = 0.90          # from two threads
RUNTIME_IDLE = 0.99          # of the same library with PGHOT_MODE=off
START_UP = 1.5               # at most, of no preload
NOISE_LIMITS = (0.95, 1.05)

TEMPORARIES_ROW = "large_temporaries/replaced"
RULES_SMALL_ROWS = ("pairs/64", "pairs/64/threads:2", "mixed", "mixed/threads:2", "batches", "batches/threads:2", "churn",
                    "churn/threads:2")
PLACED_LARGE_ROW = "large_churn/threads:2"
RULES_ROWS = (*RULES_SMALL_ROWS, "large_churn", PLACED_LARGE_ROW)


@dataclass(frozen=True)
class Ratio:
    """Of runs that followed each other, round by round."""
    rounds: tuple

    @property
    def median(self):
        return statistics.median(self.rounds)

    def __str__(self):
        return f"{self.median:.2f} [{min(self.rounds):.2f}-{max(self.rounds):.2f}]"


class Row:
    """One job's figures: variant name -> Figures or None for each round."""

    def __init__(self, name, by_wall, is_program):
        self.name, self.by_wall, self.is_program = name, by_wall, is_program
        self.figures = {}

    def add(self, variant, figures):
        self.figures.setdefault(variant, []).append(figures)

    def _paired(self, over, under, value):
        pairs = zip(self.figures.get(over, []), self.figures.get(under, []))
        ratios = tuple(value(a) / value(b) for a, b in pairs if a and b and value(a) > 0 and value(b) > 0)
        return Ratio(ratios) if ratios else None

    def speed(self, variant, base=BASE):
        return self._paired(base, variant, lambda figures: figures.wall_s if self.by_wall else figures.cpu_s)

    def memory(self, variant):
        return self._paired(variant, BASE, lambda figures: figures.peak_kib)

    @property
    def is_noise(self):
        itself = self.speed(NOISE)
        return itself is not None and not NOISE_LIMITS[0] <= itself.median <= NOISE_LIMITS[1]

    def verdict(self):
        ratio = self.speed(PRODUCT)
        if ratio is None:
            return "-"
        if self.name == StartUp.name:
            return "see below"
        if self.is_noise:
            return "noise, not judged"
        return "met" if ratio.median >= EVERY_ROW else "missed"


@dataclass(frozen=True)
class Target:
    what: str
    limit: str
    value: str
    verdict: str


def _target(what, value, at_least=None, at_most=None, of=""):
    limit = f">= {at_least:.2f}" if at_least is not None else f"<= {at_most:.2f}"
    if value is None:
        return Target(what, limit, "-", "not run")
    met = value >= at_least if at_least is not None else value <= at_most
    return Target(what, limit, f"{value:.3f}{f' ({of})' if of else ''}", "met" if met else "missed")


def _row_target(what, row, ratio, at_least):
    """A target that is about one row."""
    if ratio is not None and row.is_noise:
        return Target(what, f">= {at_least:.2f}", f"{ratio.median:.3f}", "noise, not judged")
    return _target(what, ratio and ratio.median, at_least=at_least)


def geometric_mean(ratios):
    return statistics.geometric_mean(ratios) if ratios else None


def _worst(named, worst=min):
    """(value, name) of the worst of (name, Ratio) pairs."""
    values = [(ratio.median, name) for name, ratio in named if ratio is not None]
    return worst(values, default=(None, ""))


def judged(rows):
    """Rows that say something about speed against the base."""
    return [row for row in rows if row.name != StartUp.name and row.speed(PRODUCT) and not row.is_noise]


def targets(rows):
    """Every target, in the order of the table."""
    judged_rows = judged(rows)
    by_name = {row.name: row for row in rows}
    programs = [row for row in judged_rows if row.is_program]
    result = []
    value, of = _worst((row.name, row.speed(PRODUCT)) for row in judged_rows)
    result.append(_target("slowest judged row", value, at_least=EVERY_ROW, of=of))
    result.append(_target("geometric mean of judged rows", geometric_mean([row.speed(PRODUCT).median for row in judged_rows]),
                          at_least=MEAN_OF_ROWS))
    row = by_name.get(TEMPORARIES_ROW)
    result.append(_row_target(TEMPORARIES_ROW, row, row and row.speed(PRODUCT), LARGE_TEMPORARIES))
    value, of = _worst(((row.name, row.memory(PRODUCT)) for row in rows if row.is_program), worst=max)
    result.append(_target("largest peak memory of a program, of jemalloc's", value, at_most=PEAK_MEMORY, of=of))
    value, of = _worst((name, by_name[name].speed(SIZE_RULES)) for name in RULES_SMALL_ROWS
                       if name in by_name and not by_name[name].is_noise)
    result.append(_target("slowest small row with size rules", value, at_least=SMALL_UNDER_RULES, of=of))
    row = by_name.get(PLACED_LARGE_ROW)
    result.append(_row_target("placed large blocks from two threads", row, row and row.speed(SIZE_RULES), PLACED_LARGE))
    idle = [ratio.median for ratio in (row.speed(ACTIVE, MODE_OFF) for row in programs) if ratio]
    result.append(_target("runtime active against PGHOT_MODE=off, mean of programs", geometric_mean(idle), at_least=RUNTIME_IDLE))
    start_up = by_name.get(StartUp.name)
    slower = start_up and start_up.speed(NONE, PRODUCT)    # time under the product / time without
    result.append(_target("start-up, of no preload", slower and slower.median, at_most=START_UP))
    return result
