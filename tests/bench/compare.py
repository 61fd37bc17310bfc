# SPDX-License-Identifier: Apache-2.0
"""Runs tier_bench in several configurations, in turn, several rounds in one boot of the rig, and prints one table.

A configuration is one line: name, numa_balancing mode, node that holds the memory, library to preload, environment.
Runs in the rig as root (it writes sysctls). Used by tests/bench/baselines; examples/demo adds its own configurations.
"""
import json
import os
import statistics
import subprocess
import tempfile
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Configuration:
    name: str
    numa_balancing: int = 0      # kernel.numa_balancing: 0 off, 2 memory tiering
    memory_node: int = 2         # where the memory lies when the accesses start
    preload: str = ""            # LD_PRELOAD; empty runs the program as it is
    environment: dict = field(default_factory=dict)


# The kernel's own ways, and the bound: memory that never was elsewhere.
NUMAB0 = Configuration("NUMAB0")
NUMAB2 = Configuration("NUMAB2", numa_balancing=2)
DRAM = Configuration("DRAM from the start", memory_node=0)


@dataclass
class Run:
    """What one run said: tier_bench's object, and the library's report when it wrote one."""
    bench: dict
    report: dict | None

    @property
    def wall_s(self):
        return self.bench["wall_us"] / 1e6

    @property
    def modelled_s(self):
        return None if self.bench["modelled_us"] is None else self.bench["modelled_us"] / 1e6

    def pages_on(self, node):
        return self.bench["pages_per_node"].get(str(node), 0)

    @property
    def promoted(self):
        """Pages promoted: by the library where it reports, else by the kernel."""
        counters = self.report["counters"] if self.report else self.bench["vmstat"]
        return counters.get("pgpromote_success", 0)

    @property
    def hint_faults(self):
        return self.bench["vmstat"].get("numa_hint_faults", 0)

    @property
    def samples(self):
        return self.report["counters"].get("hwhint_total_events") if self.report else None

    @property
    def lost(self):
        return self.report["counters"].get("lost_samples") if self.report else None


def _write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def reset_kernel(numa_balancing):
    """The same start for every run: promotion as asked, no page cache of earlier runs on the DRAM nodes."""
    _write("/proc/sys/kernel/numa_balancing", "0")
    os.sync()
    _write("/proc/sys/vm/drop_caches", "3")
    if numa_balancing:
        _write("/proc/sys/kernel/numa_balancing", str(numa_balancing))


def run_once(configuration, bench, arguments):
    """One run of tier_bench. Raises CalledProcessError when it fails."""
    reset_kernel(configuration.numa_balancing)
    environment = dict(os.environ, **configuration.environment)
    with tempfile.TemporaryDirectory() as folder:
        report_file = os.path.join(folder, "report.json")
        if configuration.preload:
            environment |= {"LD_PRELOAD": configuration.preload, "PGHOT_REPORT": report_file}
        command = [bench, "--memory-node", str(configuration.memory_node), *arguments]
        output = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout
        report = None
        if configuration.preload:
            with open(report_file, encoding="utf-8") as file:
                report = json.load(file)
    _write("/proc/sys/kernel/numa_balancing", "0")
    return Run(json.loads(output), report)


def run_rounds(configurations, bench, arguments, rounds, progress=None):
    """Every configuration in turn, so that a host that slows down slows all: name -> runs."""
    runs = {configuration.name: [] for configuration in configurations}
    for number in range(rounds):
        for configuration in configurations:
            if progress:
                progress(f"round {number + 1} of {rounds}: {configuration.name}")
            runs[configuration.name].append(run_once(configuration, bench, arguments))
    return runs


def _spread(values):
    values = [value for value in values if value is not None]
    if not values:
        return "-"
    return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


def _median(values):
    values = [value for value in values if value is not None]
    return f"{statistics.median(values):.0f}" if values else "-"


def speed_up(base, runs, what):
    """Ratio of the medians of base and runs; None without both."""
    medians = []
    for some in (base, runs):
        values = [value for value in (getattr(run, what) for run in some) if value is not None]
        if not values:
            return None
        medians.append(statistics.median(values))
    return medians[0] / medians[1]


HEADINGS = ("configuration", "modelled s", "wall s", "x modelled", "x wall", "node 0", "node 1", "node 2", "promoted",
            "hint faults", "samples", "lost")


def table_rows(runs, base="NUMAB0"):
    rows = []
    for name, some in runs.items():
        ratios = [speed_up(runs[base], some, what) for what in ("modelled_s", "wall_s")]
        rows.append((name, _spread([run.modelled_s for run in some]), _spread([run.wall_s for run in some]),
                     *(f"{ratio:.2f}" if ratio else "-" for ratio in ratios),
                     *(_median([run.pages_on(node) for run in some]) for node in (0, 1, 2)),
                     _median([run.promoted for run in some]), _median([run.hint_faults for run in some]),
                     _median([run.samples for run in some]), _median([run.lost for run in some])))
    return rows


def print_table(runs, base="NUMAB0"):
    """Times are median (min-max) of the rounds, all else medians; x is the speed-up against base."""
    rows = [HEADINGS, *table_rows(runs, base)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADINGS))]
    for row in rows:
        print("  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                        for i, (cell, width) in enumerate(zip(row, widths))))
    paces = [run.wall_s / run.modelled_s for run in runs[base] if run.modelled_s]
    if paces:
        pace = statistics.median(paces)
        print(f"pace: {base} takes {pace:.2f} x its modelled time on this host"
              + (", as it should." if pace <= 1.2 else "; above 1.2 the host is too busy or too slow: whoever moves pages does so by "
                 "wall-clock timers, and modelled times do not compare. Repeat on an idle machine."))


def print_model(bench):
    model = json.loads(subprocess.run([bench, "--model"], check=True, stdout=subprocess.PIPE).stdout)
    print("model: " + ", ".join(f"{name} {value}" for name, value in model.items()))
