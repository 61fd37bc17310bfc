# SPDX-License-Identifier: Apache-2.0
"""From what a run said to the figures that the tables show and the targets are judged by."""
import statistics

PAGE_MIB = 4096 / (1 << 20)
DEMOTED = ("pgdemote_kswapd", "pgdemote_direct", "pgdemote_khugepaged", "pgdemote_proactive")
# Modelled costs that are whoever moves pages': everything but the program's own instructions and misses.
TIERING_US = ("samples_us", "page_moves_us", "moving_calls_us", "hint_faults_us", "pte_updates_us")


def merged(results):
    """One object of the ranks' objects. They ran at the same time, so the longest rank's times and counts of the machine
    are the job's; pages and watched pages add up, and a set is local when it is in every rank."""
    longest = max(results, key=lambda result: result["wall_us"])
    if len(results) == 1:
        return longest
    job = dict(longest)
    modelled = [result["modelled_us"] for result in results]
    job["modelled_us"] = None if None in modelled else max(modelled)
    job["pages_per_node"] = _added([result["pages_per_node"] for result in results])
    job["pages_changed"] = sum(result["pages_changed"] for result in results)
    job["sets"] = [_merged_set(sets) for sets in zip(*(result["sets"] for result in results))]
    return job


def _added(counts):
    return {key: sum(each.get(key, 0) for each in counts) for key in sorted(set().union(*counts))}


def _merged_set(sets):
    times = [each["local_us"] for each in sets]
    return {"name": sets[0]["name"], "pages": sum(each["pages"] for each in sets),
            "local_pages": sum(each["local_pages"] for each in sets), "local_us": None if None in times else max(times),
            "moved_pages": [sum(column) for column in zip(*(each["moved_pages"] for each in sets))],
            "promoted_twice": sum(each["promoted_twice"] for each in sets)}


def slope(points):
    """Of the least-squares line through (x, y) points: what one more x gives."""
    if len(points) < 2:
        return None
    return statistics.linear_regression([x for x, _ in points], [y for _, y in points]).slope


def busy_part(points, margin=2):
    """The points between the first and the last that saw pages move, less `margin` at both ends: while there was work."""
    moved = [i for i, (before, after) in enumerate(zip(points, points[1:]), 1) if after[1] > before[1]]
    return points[moved[0] + margin:moved[-1] - margin] if moved else []


class Figures:
    """Of one run. None where nobody says it."""

    def __init__(self, run, hot_sets=("hot",)):
        self._bench, self._reports, self._moves, self._hot = run.bench, run.reports, run.moves, hot_sets

    @property
    def wall_s(self):
        return self._bench["wall_us"] / 1e6

    @property
    def modelled_s(self):
        return None if self._bench["modelled_us"] is None else self._bench["modelled_us"] / 1e6

    @property
    def checksum(self):
        return self._bench["checksum"]

    def _reported(self, name):
        """A counter of the library, all processes together."""
        values = [report["counters"].get(name) for report in self._reports]
        return None if not values or None in values else sum(values)

    def _vmstat(self, *names):
        return sum(self._bench["vmstat"].get(name, 0) for name in names)

    @property
    def up(self):
        return self._vmstat("pgpromote_success") + (self._reported("pgpromote_success") or 0)

    @property
    def down(self):
        return self._vmstat(*DEMOTED) + (self._reported("pgdemote_success") or 0)

    @property
    def moved(self):
        """Whoever moved them, wherever."""
        return self._vmstat("pgmigrate_success")

    @property
    def whole_huge_pages(self):
        return self._vmstat("thp_migration_success")

    @property
    def changed(self):
        """Pages of the program that lie elsewhere than at the start."""
        return self._bench["pages_changed"]

    @property
    def repeated(self):
        """Moves beyond one a page that lies elsewhere in the end: of pages that moved again, or back, or that are not the
        program's."""
        return max(0, self.moved - self.changed)

    @property
    def useful(self):
        return self._reported("promotions_paid")

    @property
    def wasted(self):
        return self._reported("promotions_wasted")

    @property
    def ping_pong(self):
        return self._reported("pages_ping_pong")

    @property
    def samples(self):
        return self._reported("hwhint_total_events")

    @property
    def sampler_s(self):
        nanoseconds = self._reported("sampler_cpu_ns")
        return None if nanoseconds is None else nanoseconds / 1e9

    @property
    def mover_s(self):
        nanoseconds = self._reported("mover_cpu_ns")
        return None if nanoseconds is None else nanoseconds / 1e9

    def pages_on(self, node):
        return self._bench["pages_per_node"].get(str(node), 0)

    @property
    def phases(self):
        """Name -> the program's object of that phase, in order."""
        return {phase["name"]: phase for phase in self._bench["phases"]}

    @property
    def all_sets(self):
        return self._bench["sets"]

    def set(self, name):
        return next((each for each in self.all_sets if each["name"] == name), None)

    @property
    def local_s(self):
        """Seconds of the clock until 90 % of the watched hot pages were local, in the slowest set; inf: not in this run."""
        times = [self.set(name)["local_us"] for name in self._hot if self.set(name)]
        if not times:
            return None
        return float("inf") if None in times else max(times) / 1e6

    def tiering_share(self, prefix=""):
        """The modelled costs of tiering over the wall time, of phases whose name begins with `prefix`. For phases that the
        emulator runs much slower than the model: whoever moves pages goes by the clock, so its costs are held against the
        clock's time."""
        phases = [phase for name, phase in self.phases.items() if name.startswith(prefix)]
        if not phases or any(phase["modelled"] is None for phase in phases):
            return None
        return (sum(phase["modelled"][cost] for phase in phases for cost in TIERING_US)
                / sum(phase["wall_us"] for phase in phases))

    @property
    def busy_seconds(self):
        busy = busy_part(self._moves)
        return busy[-1][0] - busy[0][0] if busy else 0.0

    @property
    def move_rate_mib(self):
        """MiB moved in a second while there was work; None where nobody watched or nothing moved."""
        pages = slope(busy_part(self._moves))
        return None if pages is None else pages * PAGE_MIB
