# SPDX-License-Identifier: Apache-2.0
"""Runs one workload in one configuration: prepares the machine, starts the program or its ranks, pushes memory down where
that is wanted, and gathers what program, kernel and library say."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field

import machine
from figures import merged
from workload_list import cpu_node_of

WATCH_MS = "50"
RUN_LIMIT_S = 900


@dataclass(frozen=True)
class Build:
    """Where the programs and the library are."""
    folder: pathlib.Path

    def program(self, name):
        return str(self.folder / "tests" / "bench" / name)

    @property
    def library(self):
        return str(self.folder / "libpghot.so")

    def settings(self):
        """Names of the library's settings, of this build."""
        command = [str(self.folder / "pghot"), "tunables"]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        return {word for word in output.replace("`", " ").replace("=", " ").split() if word.startswith("PGHOT_")}


@dataclass
class Run:
    """What one run said: the program's object (of all ranks), the library's reports, how pages moved over time."""
    bench: dict
    reports: list = field(default_factory=list)
    moves: list = field(default_factory=list)


class Runner:
    def __init__(self, build, common_settings, quick=False):
        """`common_settings`: of the library in every run, name without PGHOT_ -> value. Settings that this build does
        not have are left out and stay in `unknown`."""
        self.build, self.quick = build, quick
        self.common = common_settings
        self.known = build.settings()
        self.unknown = set()

    def _environment(self, workload, configuration, report):
        if not configuration.library:
            return {}
        wanted = self.common | dict(workload.environment) | dict(configuration.environment)
        wanted |= {"START_MIN": "0"} if self.quick else {}    # short forms are below its default
        known = {f"PGHOT_{name}": value for name, value in wanted.items() if f"PGHOT_{name}" in self.known}
        self.unknown |= {f"PGHOT_{name}" for name in wanted} - known.keys()
        return {"LD_PRELOAD": self.build.library, "PGHOT_REPORT": report} | known

    def why_not(self, workload, configuration):
        """What is not there for this run, or None."""
        if not os.path.exists(self.build.program(workload.program)):
            return f"{workload.program} is not built"
        if workload.ranks and not shutil.which("mpirun"):
            return "no mpirun"
        lacking = [f"PGHOT_{name}" for name, _ in configuration.environment if f"PGHOT_{name}" not in self.known]
        return f"this build has no {', '.join(lacking)}" if lacking else None

    def _arguments(self, workload, configuration):
        memory = configuration.memory or workload.memory
        arguments = [*workload.arguments, *(workload.quick if self.quick else ()), "--watch-ms", WATCH_MS]
        return arguments + (["--memory-node", memory] if workload.memory else [])

    def _command(self, workload, configuration, environment, folder):
        """The command line, each rank's result in a file of its own in the folder."""
        arguments = self._arguments(workload, configuration)
        program = self.build.program(workload.program)
        if not workload.ranks:
            stop = ["--stop"] if workload.pushed else []
            return [program, *arguments, *stop, "--output", f"{folder}/0.json"]
        exports = [part for name, value in environment.items() for part in ("-x", f"{name}={value}")]
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "btl", "self,vader"]
        for rank in range(workload.ranks):
            node = ["--cpu-node", str(cpu_node_of(rank))] if workload.program == "tier_bench" else []
            command += [":"] if rank else []
            command += ["-n", "1", *exports, program, *arguments, *node, "--stop", "--output", f"{folder}/{rank}.json"]
        return command

    def run(self, workload, configuration):
        """One run. Raises when a program fails or says nothing."""
        machine.drop_caches()
        hogs = () if configuration.undisturbed else workload.hogs
        with contextlib.ExitStack() as stack:
            stack.enter_context(machine.demotion(workload.demotion or configuration.demotion))
            stack.enter_context(machine.hogs(self.build.program("memory_hog"), hogs))
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            environment = self._environment(workload, configuration, f"{folder}/report-%p.json")
            command = self._command(workload, configuration, environment, folder)
            own = dict(os.environ) | ({} if workload.ranks else environment)
            moves = self._execute(workload, configuration, command, own)
            results = [json.loads(path.read_text()) for path in sorted(pathlib.Path(folder).glob("[0-9]*.json"))]
            reports = [json.loads(path.read_text()) for path in sorted(pathlib.Path(folder).glob("report-*.json"))]
        if len(results) != max(1, workload.ranks) or (configuration.library and len(reports) != len(results)):
            raise RuntimeError(f"{len(results)} results and {len(reports)} reports")
        return Run(merged(results), reports, moves)

    def _execute(self, workload, configuration, command, environment):
        """Runs the program to its end; how pages moved meanwhile, where ranks run."""
        waits = "--stop" in command
        if not waits:
            machine.promote(configuration.numa_balancing)
        with subprocess.Popen(command, env=environment, start_new_session=True, stdin=subprocess.DEVNULL) as process:
            try:
                stopped = self._ready(workload, configuration, process) if waits else []
                with machine.MoveRate() if workload.ranks else contextlib.nullcontext() as rate:
                    for each in stopped:
                        os.kill(each, signal.SIGCONT)
                    status = process.wait(RUN_LIMIT_S)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        if status != 0:
            raise RuntimeError(f"{' '.join(command)}: status {status}")
        return rate.points if rate else []

    def _ready(self, workload, configuration, process):
        """The stopped programs, memory where it shall start. Only now the kernel promotes: it looks at each mapping twice for
        nothing asked and then hardly at those that caused no fault, so both looks would be wasted on the construction."""
        stopped = machine.wait_until_stopped(process.pid, max(1, workload.ranks), lambda: process.poll() is not None)
        for each in stopped if workload.pushed and not configuration.undisturbed else ():
            machine.push_down(each)
        machine.promote(configuration.numa_balancing)
        return stopped
