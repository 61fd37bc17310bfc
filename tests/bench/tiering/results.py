# SPDX-License-Identifier: Apache-2.0
"""Figures of all rounds: medians, spreads and ratios of medians."""
import statistics


def median(values):
    """Of those that are there; None without any. inf (not in this run) counts as a value."""
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def ratio(over, under):
    """None without both, or when there is nothing to divide by."""
    return None if over is None or not under else over / under


class Results:
    """workload name -> configuration name -> Figures of each round."""

    def __init__(self):
        self._figures = {}

    def add(self, workload, configuration, figures):
        self._figures.setdefault(workload, {}).setdefault(configuration, []).append(figures)

    def configurations(self, workload):
        return list(self._figures.get(workload, {}))

    def of(self, workload, configuration):
        return self._figures.get(workload, {}).get(configuration, [])

    def median(self, workload, configuration, value):
        """`value` reads one run's figures."""
        return median([value(figures) for figures in self.of(workload, configuration)])

    def speed_up(self, workload, base, configuration, value):
        """How many times as fast as `base` the configuration is; `value` reads a time."""
        return ratio(self.median(workload, base, value), self.median(workload, configuration, value))

    def disagreement(self, workload):
        """The checksums, when runs of a workload that must agree do not; else None."""
        sums = {figures.checksum for runs in self._figures.get(workload, {}).values() for figures in runs}
        return sums if len(sums) > 1 else None
