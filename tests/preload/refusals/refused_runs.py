# SPDX-License-Identifier: Apache-2.0
"""Runs refused_program under refuse and judges the run; for on_this_machine.py and tests/rig/product/refusals.py."""
import dataclasses
import json
import os
import pathlib
import subprocess
import tempfile

# A run ends by itself within seconds; who takes this long hangs.
PATIENCE_SECONDS = 60

# What report and manual call the system calls that the C library makes.
NAMES = {"openat": "open", "newfstatat": "fstat", "prlimit64": "getrlimit", "clone3": "pthread_create",
         "query_pages": "move_pages"}


@dataclasses.dataclass
class Row:
    """A call of ours and the answers it gets in turn."""
    thread: str
    call: str
    answers: str                       # error names, or what refuse takes beside them, separated by spaces
    likely: str = ""                   # the answer of the short form; empty: the first
    silent: str = ""                   # answers that need no mention: the call is made again, or means nothing
    names: tuple = ()                  # other names under which the report may have it
    counter: dict = dataclasses.field(default_factory=dict)    # answer -> counter that must have counted instead
    settings: dict = dataclasses.field(default_factory=dict)
    limit: str = ""                    # of prlimit, for the program
    when: tuple = ("first", "nth", "every")

    def all_answers(self):
        return self.answers.split()


@dataclasses.dataclass
class Run:
    status: int
    output: str
    said: str
    report: dict
    refused: list    # for each rule, how often
    calls: dict      # thread -> call -> count, with list_calls


class Stage:
    """Where programs are run: the build, and the settings of each run."""

    def __init__(self, library, tools, arguments, settings):
        self.library, self.tools = pathlib.Path(library).resolve(), pathlib.Path(tools).resolve()
        self.arguments, self.settings = arguments, settings

    def run(self, rules=(), list_calls=False, limit="", **settings):
        with tempfile.TemporaryDirectory() as folder:
            log, report = pathlib.Path(folder) / "log", pathlib.Path(folder) / "report.json"
            supervise = [self.tools / "refuse", "--log", log, *(["--list"] if list_calls else []), *rules, "--"]
            setup = {"LD_PRELOAD": self.library, "PGHOT_REPORT": report, "PGHOT_RECORD": pathlib.Path(folder) / "run.rec",
                     **self.settings, **settings}
            # env sets LD_PRELOAD for the program alone, not for the supervisor.
            limited = ["prlimit", limit] if limit else []
            command = [*limited, *supervise, "env", *(f"{name}={value}" for name, value in setup.items()),
                       self.tools / "refused_program", *self.arguments]
            try:
                done = subprocess.run([str(part) for part in command], cwd=folder, stdin=subprocess.DEVNULL,
                                      capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
            except subprocess.TimeoutExpired as late:
                return Run(-1, str(late.stdout), "hangs", None, [], {})
            try:
                found = json.loads(report.read_text())
            except (OSError, ValueError):
                found = None
            written = json.loads(log.read_text()) if log.exists() else {"rules": [], "calls": {}}
            return Run(done.returncode, done.stdout, done.stderr, found, [rule["refused"] for rule in written["rules"]],
                       written["calls"])


def names_the_refusal(run, row, answer):
    if answer in row.silent.split():
        return True
    if run.report is None:
        return "pghot: PGHOT_REPORT: " in run.said and "report.json" in run.said
    counter = row.counter.get(answer)
    if counter and run.report["counters"][counter] > 0:
        return True
    names = {NAMES.get(row.call, row.call), *row.names}
    return any(entry["call"] in names and (row.names or entry["error"] == answer)
               for entry in run.report["refused_calls"])


def faults_of(run, expected, row, answer):
    """What is wrong with a run whose rule was row and answer."""
    faults = []
    if run.status != 0:
        faults.append(f"status {run.status}")
    if run.output != expected:
        faults.append(f"output {run.output!r}")
    if any(not line.startswith("pghot: ") for line in run.said.splitlines()):
        faults.append("the program itself, or the C library, said something")
    if run.report is not None:
        faults += [f"not true: {equation}" for equation, holds in run.report["identities"].items() if not holds]
    if sum(run.refused) > 0 and not names_the_refusal(run, row, answer):
        faults.append("nothing names it")
    return faults


def describe(run):
    if run.report is None:
        return f"no report; said {run.said!r}"
    refused = ", ".join(f"{entry['call']} {entry['error']} {entry['count']}" for entry in run.report["refused_calls"])
    figures = {name: value for name, value in run.report["counters"].items()
               if value and (name.startswith("pgpromote") or name in ("hwhint_useful_events", "rings_failed"))}
    return f"{run.report['state']}; {run.report['source']['reason']}; refused: {refused}; {figures}; said {run.said!r}"


def cases_of(row, whole, usual_count):
    """(answer, when) of each run of a row: nth is one in the middle, each is every single one. usual_count: calls in an
    undisturbed run."""
    if not whole:
        yield row.likely or row.all_answers()[0], "every" if "every" in row.when else row.when[0]
        return
    for answer in row.all_answers():
        for when in row.when:
            if when == "each":
                yield from ((answer, str(number)) for number in range(1, usual_count + 1))
            elif when != "nth":
                yield answer, when
            elif usual_count > 1:
                yield answer, str(max(2, usual_count // 2))
