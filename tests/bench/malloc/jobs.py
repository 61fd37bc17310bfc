# SPDX-License-Identifier: Apache-2.0
"""What is run: the rows of malloc_bench, starting processes, and whole programs (programs.py). A job runs under one
variant and says what that cost."""
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
from dataclasses import dataclass

RUN_SECONDS = 300    # a run takes about a second; beyond this it hangs


class Failed(Exception):
    """A run that gives no figures, and why."""


@dataclass(frozen=True)
class Figures:
    cpu_s: float      # user and system, of all threads and processes
    wall_s: float
    peak_kib: int     # of the largest process


def clean_environment():
    """Ours without what would change an allocator."""
    foreign = re.compile(r"LD_PRELOAD|GLIBC_TUNABLES|(PGHOT|MALLOC|MIMALLOC|TCMALLOC|JEMALLOC)_.*|PYTHONMALLOC")
    return {name: value for name, value in os.environ.items() if not foreign.fullmatch(name)}


class Machine:
    """Where jobs run: the two programs of the build, and a scratch folder."""

    def __init__(self, build, scratch, quick):
        self.bench = pathlib.Path(build).resolve() / "tests/bench/malloc/malloc_bench"
        self.measure = self.bench.with_name("malloc_bench_measure")
        self.scratch = pathlib.Path(scratch)
        self.quick = quick

    def preloads(self, variant):
        """Does the loader take the variant's library?"""
        _, maps = self.run(["cat", "/proc/self/maps"], variant)
        return os.path.realpath(variant.library).encode() in maps

    def start(self, command, variant, cost_file, folder=None, settings=None, times=1):
        """The command under the variant, in a process group of its own."""
        return subprocess.Popen([self.measure, cost_file, str(times), *variant.assignments, "--", *command],
                                cwd=folder or self.scratch, env={**clean_environment(), **(settings or {})},
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                start_new_session=True)

    def run(self, command, variant, folder=None, settings=None, times=1):
        """(what it cost, what it printed)."""
        with tempfile.NamedTemporaryFile(dir=self.scratch) as cost_file:
            process = self.start(command, variant, cost_file.name, folder, settings, times)
            output = finish(process)
            return read_cost(cost_file.name), output


def finish(process):
    """What it printed, once it has ended well. It has ended in any case."""
    try:
        output, errors = process.communicate(timeout=RUN_SECONDS)
    except subprocess.TimeoutExpired:
        raise Failed(f"still ran after {RUN_SECONDS} s") from None
    finally:
        end(process)
    if process.returncode != 0:
        last_words = (errors or output).decode(errors="replace").strip().splitlines()[-1:]
        raise Failed(f"exit status {process.returncode}: {' '.join(last_words)}")
    return output


def end(process):
    """Nothing of its process group outlives this."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def read_cost(path):
    with open(path, encoding="ascii") as file:
        cost = json.load(file)
    return Figures(cost["user_s"] + cost["system_s"], cost["wall_s"], cost["peak_kib"])


class BenchmarkRow:
    """One row of malloc_bench, in a process of its own."""

    def __init__(self, full_name):
        self.full_name = full_name
        self.name = re.sub(r"/(iterations:\d+|process_time|real_time)", "", full_name)
        self.by_wall = "/real_time" in full_name
        self.is_program = False

    def missing_for(self, _variant):
        return ""

    def run(self, machine, variant):
        cost, output = machine.run([machine.bench, f"--benchmark_filter=^{self.full_name}$", "--benchmark_format=json",
                                    *quick_options(machine)], variant)
        row, = json.loads(output)["benchmarks"]
        # Of the timed loop only, not of filling slots before it.
        seconds = row["iterations"] * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3}[row["time_unit"]]
        return Figures(row["cpu_time"] * seconds, row["real_time"] * seconds, cost.peak_kib)


def quick_options(machine):
    return ["--scale=0.005"] if machine.quick else []


def benchmark_rows(machine):
    listed = subprocess.run([machine.bench, "--benchmark_list_tests", *quick_options(machine)], env=clean_environment(),
                            capture_output=True, text=True, check=True).stdout
    return [BenchmarkRow(name) for name in listed.split()]


class StartUp:
    """A thousand processes that do nothing."""
    name = "start-up"
    by_wall = False
    is_program = False

    def missing_for(self, _variant):
        return ""

    def run(self, machine, variant):
        times = 20 if machine.quick else 1000
        cost, _ = machine.run(["/bin/true"], variant, times=times)
        return cost
