# SPDX-License-Identifier: Apache-2.0
"""Builds the presets and runs all suites, for ./tests/run: says what it does, counts, lists failures and skips."""
import argparse
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parents[1]
JOBS = str(os.cpu_count() or 1)
SKIP_STATUS = 77
RIG_TEST_SECONDS = 900    # of one script: a boot takes about ten seconds, the longest measures for some minutes


@dataclasses.dataclass
class Outcome:
    name: str
    state: str    # passed, failed, skipped
    reason: str = ""


def say(text):
    print(f"tests/run: {text}", flush=True)


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"


def skip_reason(output):
    """What a skipped test says is missing: the line after GoogleTest's "Skipped", else the last line."""
    match = re.search(r": Skipped\n(.+)", output)
    return match.group(1).strip() if match else last_line(output)


def failure_reason(output):
    """Where GoogleTest saw the failure, else the last line."""
    match = re.search(r"^(\S+:\d+): Failure$", output, re.MULTILINE)
    return match.group(1) if match else last_line(output)


def outcome_of(case, prefix):
    """Reads one testcase element of ctest's JUnit file."""
    name = prefix + case.get("name")
    output = case.findtext("system-out") or ""
    skipped, failure = case.find("skipped"), case.find("failure")
    if failure is not None:
        return Outcome(name, "failed", failure.get("message") or failure_reason(output))
    if case.get("status") == "disabled":
        return Outcome(name, "skipped", "disabled")
    if skipped is None:
        return Outcome(name, "passed" if case.get("status") == "run" else "failed", case.get("status"))
    if skipped.get("message") in ("SKIP_REGULAR_EXPRESSION_MATCHED", "SKIP_RETURN_CODE=77"):
        return Outcome(name, "skipped", skip_reason(output))
    return Outcome(name, "failed", f"did not run: {skipped.get('message')}")


def unrandomized():
    """Command prefix that switches address randomisation off, where the kernel lets us: ThreadSanitizer of GCC 12
    cannot map its shadow when vm.mmap_rnd_bits is above 28."""
    prefix = ["setarch", "-R"]
    try:
        works = subprocess.run(prefix + ["true"], capture_output=True, check=False).returncode == 0
    except OSError:
        works = False
    return prefix if works else []


def commits_strictly():
    try:
        return pathlib.Path("/proc/sys/vm/overcommit_memory").read_text(encoding="ascii").strip() == "2"
    except OSError:
        return False


class Suites:
    def __init__(self, pattern):
        self.pattern = pattern
        self.outcomes = []

    def add(self, outcome):
        self.outcomes.append(outcome)
        return outcome

    def build(self, preset):
        """Configures and builds; False, counted as a failure, when that does not work."""
        start = time.monotonic()
        say(f"building {preset} in build/{preset}")
        prefix = unrandomized() if preset == "tsan" else []    # the build runs the tests to list them
        for step in (["cmake", "--preset", preset], ["cmake", "--build", "--preset", preset, "--parallel", JOBS]):
            done = subprocess.run(prefix + step, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  check=False)
            if done.returncode != 0:
                print(done.stdout[-20000:])
                self.add(Outcome(f"build {preset}", "failed", " ".join(step)))
                return False
        say(f"built {preset} in {time.monotonic() - start:.0f} s")
        return True

    def ctest(self, preset, label):
        folder = ROOT / "build" / preset
        result = folder / "tests.xml"
        result.unlink(missing_ok=True)
        say(f"testing {preset}")
        command = ["ctest", "--output-on-failure", "--parallel", JOBS, "--output-junit", str(result)]
        if self.pattern:
            command += ["--tests-regex", self.pattern]
        prefix = unrandomized() if preset == "tsan" else []
        subprocess.run(prefix + command, cwd=folder, check=False)
        if not result.exists():
            self.add(Outcome(f"ctest {preset}", "failed", "ctest wrote no result"))
            return
        for case in xml.parse(result).getroot().iter("testcase"):
            self.add(outcome_of(case, label))

    def rig(self):
        for script in sorted((ROOT / "tests" / "rig").glob("test_*")):
            name = f"rig.{script.name.removeprefix('test_')}"
            if not os.access(script, os.X_OK) or (self.pattern and not re.search(self.pattern, name)):
                continue
            say(f"{name} on the emulated machine")
            self.add(run_script(script, name))

    def summary(self):
        """Lists what was skipped and what failed, prints the counts last. The exit status."""
        count = {state: 0 for state in ("passed", "failed", "skipped")}
        for outcome in self.outcomes:
            count[outcome.state] += 1
        print()
        for state in ("skipped", "failed"):
            for outcome in self.outcomes:
                if outcome.state == state:
                    print(f"{state}: {outcome.name}: {outcome.reason}")
        if not self.outcomes:
            print(f"no test matches {self.pattern!r}")
        print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped", flush=True)
        return 1 if count["failed"] or not self.outcomes else 0


def run_script(script, name):
    """Runs one script, passing its output on as it comes."""
    start = time.monotonic()
    output = ""
    with subprocess.Popen(["timeout", "-k", "20", str(RIG_TEST_SECONDS), script], cwd=ROOT, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as process:
        for line in process.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            output = (output + line)[-10000:]
    seconds = time.monotonic() - start
    if process.returncode == SKIP_STATUS:
        return Outcome(name, "skipped", last_line(output))
    if process.returncode != 0:
        return Outcome(name, "failed", f"exit status {process.returncode} after {seconds:.0f} s: {last_line(output)}")
    say(f"{name} passed in {seconds:.0f} s")
    return Outcome(name, "passed")


def main():
    parser = argparse.ArgumentParser(prog="tests/run")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("pattern", nargs="?", default="")
    options = parser.parse_args()

    suites = Suites(options.pattern)
    if options.quick:
        say("quick: without the sanitizers and the emulated machine")
    released = suites.build("release")
    if released:
        suites.ctest("release", "")
    if not options.quick:
        for preset in ("asan", "tsan"):
            if commits_strictly():
                suites.add(Outcome(preset, "skipped", "vm.overcommit_memory is 2: sanitizers cannot reserve their shadow memory"))
            elif suites.build(preset):
                suites.ctest(preset, f"{preset}: ")
        if released:
            suites.rig()
    return suites.summary()


if __name__ == "__main__":
    sys.exit(main())
