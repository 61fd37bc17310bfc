# SPDX-License-Identifier: Apache-2.0
"""Ranks of a job share one budget, killed ranks block nobody, what they leave is removed; and a program whose hot pages are
all at home is sampled less until there is something to do again."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time

from harness import BUILD, Checks, TIER_BENCH, WORKLOAD, check_report, library_environment, run, share

PGHOT = BUILD / "pghot"
MIB = 1 << 20
RATE = 8
RANKS = 4
BATCH_BYTES = 64 * 4096    # PGHOT_MIGRATE_BATCH below
SECONDS = 10
FOLDER = pathlib.Path("/dev/shm")
checks = Checks()


def start_rank(folder, number, job):
    """A program with more hot memory than its share of the budget moves in the time, and an own CPU for two ranks."""
    environment = library_environment(folder / f"{number}.json", JOB=job, RATE_LIMIT_MBPS=RATE, FREQ_THRESHOLD=1, MIGRATE_BATCH=64,
                                      IBS_PERIOD=512)
    command = [TIER_BENCH, "--threads", "1", "--cpu-node", str(number % 2), "--memory-node", "2", "--bytes", "128M", "--accesses",
               "400M", "--pattern", "uniform"]
    return subprocess.Popen([str(part) for part in command], env=environment, stdout=subprocess.DEVNULL)


def stat(*options):
    done = subprocess.run([str(PGHOT), "stat", "--json", *options], stdout=subprocess.PIPE, text=True, timeout=60, check=False)
    return json.loads(done.stdout), done.returncode


def bytes_of(ranks):
    """Seconds of the clock, and what each rank has brought home."""
    listed, _ = stat()
    moved = {process["pid"]: process for process in listed["processes"] if process["same_version"]}
    return time.monotonic(), [moved[rank.pid]["promoted_bytes"] if rank.pid in moved else 0 for rank in ranks], moved


def rates_over(seconds, ranks):
    """MiB/s of each rank."""
    begin, before, _ = bytes_of(ranks)
    time.sleep(seconds)
    end, after, _ = bytes_of(ranks)
    return [(late - early) / MIB / (end - begin) for early, late in zip(before, after)]


def wait_for_moves(ranks):
    limit = time.monotonic() + 90
    while time.monotonic() < limit:
        moved = bytes_of(ranks)[1]
        if all(moved):
            return True
        time.sleep(0.5)
    return False


def text(rates):
    return ", ".join(f"{rate:.2f}" for rate in rates) + f" = {sum(rates):.2f} MiB/s of {RATE}"


def check_one_budget(folder):
    ranks = [start_rank(folder, number, "four") for number in range(RANKS)]
    try:
        checks.that("four ranks move", wait_for_moves(ranks))
        rates = rates_over(SECONDS, ranks)
        # A batch of each rank may be on its way at either end.
        slack = RANKS * BATCH_BYTES / MIB / SECONDS
        checks.that("four ranks together keep the budget to 3 %", abs(sum(rates) - RATE) <= 0.03 * RATE + slack, text(rates))
        checks.that("each has a fair part of it", all(0.8 <= rate * RANKS / sum(rates) <= 1.2 for rate in rates), text(rates))
        _, _, listed = bytes_of(ranks)
        of_job = [process for process in listed.values() if process["job"] == "four"]
        checks.that("pghot stat lists them with their job, and their parts of the budget",
                    len(of_job) == RANKS and all(process["ranks"] == RANKS and 20 <= process["budget_percent"] <= 30
                                                 for process in of_job),
                    str([(process["ranks"], process.get("budget_percent")) for process in of_job]))

        for rank in ranks[1:]:
            rank.send_signal(signal.SIGKILL)
            rank.wait()
        rates = rates_over(SECONDS / 2, ranks[:1])
        slack = 2 * BATCH_BYTES / MIB / (SECONDS / 2)
        checks.that("when three are killed the fourth has it all", abs(rates[0] - RATE) <= 0.03 * RATE + slack, text(rates))
        cleaned, status = stat("--clean")
        checks.that("pghot stat --clean leaves alone what is in use",
                    status == 0 and [job["fate"] for job in cleaned["jobs"]] == ["in use"], str(cleaned))
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    checks.that("ranks that are killed leave the board", (FOLDER / "pghot.0.four").exists())
    cleaned, status = stat("--clean")
    checks.that("pghot stat --clean removes it then", status == 0 and [job["fate"] for job in cleaned["jobs"]] == ["removed"] and
                not (FOLDER / "pghot.0.four").exists(), str(cleaned))
    checks.that("pghot stat says that nothing runs", stat() == ({"processes": []}, 1))


SMALL = ("--threads", 1, "--cpu-node", 0, "--memory-node", 2, "--accesses", "3M", "--bytes", "32M", "--pattern", "uniform")


def check_names():
    _, report = run([TIER_BENCH, *SMALL], FREQ_THRESHOLD=1, JOB="alone")
    checks.that("a rank that ends properly takes its board away", report["job"]["name"] == "alone" and
                report["job"]["ranks"] == 1 and not (FOLDER / "pghot.0.alone").exists(), str(report["job"]))
    os.environ["PMIX_NAMESPACE"] = "prterun-node-1@1"
    _, report = run([TIER_BENCH, *SMALL], FREQ_THRESHOLD=1)
    checks.that("the job is the MPI launcher's", report["job"]["name"] == "pmix.prterun-node-1_1", str(report["job"]))
    _, report = run([TIER_BENCH, *SMALL], FREQ_THRESHOLD=1, JOB="none")
    checks.that("PGHOT_JOB=none is alone", (report["job"]["name"], report["job"]["reason"]) == ("", "no job is named"),
                str(report["job"]))
    del os.environ["PMIX_NAMESPACE"]


def check_refusals():
    """A file that is not ours alone leaves the process alone, with the reason in the report."""
    def link(path):
        path.symlink_to("/dev/zero")

    def foreign(path):
        path.touch(0o600)
        os.chown(path, 12345, 12345)

    def opened(path):
        path.touch(0o600)
        path.chmod(0o666)

    for name, make, error in (("link", link, "ELOOP"), ("foreign", foreign, "EPERM"), ("opened", opened, "EACCES")):
        path = FOLDER / f"pghot.0.{name}"
        make(path)
        result, report = run([TIER_BENCH, *SMALL], FREQ_THRESHOLD=1, JOB=name)
        checks.that(f"a {name} file is refused and the process alone", report["job"]["name"] == "" and
                    error in report["job"]["reason"] and share(result["pages_per_node"], 0) >= 0.9, str(report["job"]))
        check_report(checks, name, report)
        path.unlink()


def check_plateau():
    seconds = 36
    result, report = run([WORKLOAD, "second-set", seconds], FREQ_THRESHOLD=1, START_MIN=0)
    check_report(checks, "plateau", report)
    rows = [row for row in report["seconds"] if row["ms"] >= 1000]
    begin_ms = seconds * 2 / 3 * 1000
    first = max(row["samples"] for row in rows if row["ms"] < 6000)
    quiet = [row for row in rows if begin_ms - 6000 < row["ms"] < begin_ms - 1000]
    most = max(row["samples"] for row in quiet)
    checks.that("at the plateau a quarter of the samples or fewer are taken", 4 * most <= first,
                f"{most} a second, {first} at first; periods {[row['period'] for row in rows]}")
    checks.that("the first set came home", share(result["first"], 0) >= 0.95, str(result["first"]))
    checks.that("a second set that gets hot at the plateau comes home", share(result["second"], 0) >= 0.95, str(result["second"]))
    woken = min(row["period"] for row in rows if row["ms"] > begin_ms)
    checks.that("and is sampled as the first one was", woken == min(row["period"] for row in rows), f"period {woken}")


with tempfile.TemporaryDirectory() as temporary:
    check_one_budget(pathlib.Path(temporary))
check_names()
check_refusals()
check_plateau()
checks.end()
