# SPDX-License-Identifier: Apache-2.0
"""For scripts that start programs in odd surroundings: the same program with and without the library, and checks that
say what was seen. A script ends with `end()`."""
import os
import subprocess
import sys

SKIP = 77
LIMIT_S = 60    # a hang
_counts = {"ok": 0, "FAILED": 0, "skipped": 0}


def _say(outcome, name, figures):
    _counts[outcome] += 1
    print(f"{outcome}: {name}: {figures}", flush=True)


def check(name, good, figures):
    _say("ok" if good else "FAILED", name, figures)
    return good


def skip(name, missing):
    _say("skipped", name, missing)


def end():
    """Exit status of the script: a skip only where nothing could be tried."""
    if _counts["FAILED"]:
        sys.exit(1)
    sys.exit(0 if _counts["ok"] else SKIP)


def preloaded(library, **settings):
    """The environment of a program under `library`; None for plain. Settings that all of them shall have stand in
    UNDER_LIBRARY, as NAME=VALUE with blanks between."""
    clean = {name: value for name, value in os.environ.items()
             if name != "LD_PRELOAD" and not name.startswith("PGHOT_")}
    if library:
        clean |= dict(setting.split("=", 1) for setting in os.environ.get("UNDER_LIBRARY", "").split())
        clean["LD_PRELOAD"] = str(library)
    return {**clean, **settings}


def run(command, library, settings=None, **options):
    """(status, output, errors), whatever happens; a signal is a negative status, a hang is None."""
    options.setdefault("env", preloaded(library, **(settings or {})))
    options.setdefault("stdin", subprocess.DEVNULL)
    try:
        done = subprocess.run(command, capture_output=True, timeout=LIMIT_S, check=False, **options)
    except subprocess.TimeoutExpired as late:
        return None, late.stdout, late.stderr
    return done.returncode, done.stdout, done.stderr


def same(name, command, library, **options):
    """The program gives the same with the library as without."""
    plain = run(command, None, **options)
    ours = run(command, library, **options)
    return check(name, ours == plain, f"{ours}" if ours == plain else f"with {ours}, without {plain}")
