# SPDX-License-Identifier: Apache-2.0
"""Nothing is lost and nothing corrupt while pages travel up and down: the allocator stress of tests/preload/soak with all of
its memory sampled and promoted at full budget, while another process pushes it back to the lower tier all the time."""
import argparse
import contextlib
import ctypes
import json
import pathlib
import subprocess
import tempfile
import threading

from harness import Checks, SOAK, check_report, library_environment, vmstat

SYS_migrate_pages = 256    # x86-64; libc has no wrapper
DRAM_NODES, LOWER_NODES = 0b011, 0b100
PUSH_EVERY_S = 0.5
THREADS_OF_LIBRARY = ["pghot-mover", "pghot-sampler"]
# Where memory is born, and how many pages must have come home in 20 s, a small part of what does.
PLACEMENTS = ("slow", "size>=256K:interleave:0,2", "")
PAGES_MOVED = 2000

parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=int, default=60)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--threads", type=int, default=4)
parser.add_argument("--mib", type=int, default=256)
options = parser.parse_args()
checks = Checks()


@contextlib.contextmanager
def pushed_down(process):
    """Moves all pages of the process to the lower tier, again and again."""
    libc = ctypes.CDLL(None, use_errno=True)
    over = threading.Event()
    mask = lambda nodes: ctypes.byref(ctypes.c_ulong(nodes))

    def push():
        while not over.wait(PUSH_EVERY_S):
            libc.syscall(SYS_migrate_pages, process.pid, 64, mask(DRAM_NODES), mask(LOWER_NODES))

    pusher = threading.Thread(target=push)
    pusher.start()
    try:
        yield
    finally:
        over.set()
        pusher.join()


def soak(seconds, folder, **settings):
    """The soak's exit status and output, and its process number."""
    command = [SOAK, "--seconds", seconds, "--threads", options.threads, "--seed", options.seed, "--bytes", options.mib << 20]
    environment = library_environment(folder / "%p.json", FREQ_THRESHOLD=1, START_MIN=0, MIGRATE_SLEEP=50, **settings)
    with subprocess.Popen([str(part) for part in command], env=environment, stdout=subprocess.PIPE, text=True) as process:
        with pushed_down(process):
            try:
                output, _ = process.communicate(timeout=2 * seconds + 180)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return process.returncode, output, process.pid


def names_of_processes():
    for entry in pathlib.Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):    # gone meanwhile
            yield entry.read_text().strip()


def check_soak(name, seconds, **settings):
    before = vmstat("pgmigrate_success")
    with tempfile.TemporaryDirectory() as name_of_folder:
        folder = pathlib.Path(name_of_folder)
        status, output, process = soak(seconds, folder, **settings)
        moved = vmstat("pgmigrate_success") - before
        checks.that(f"{name}: no byte is wrong, no call fails, no child dies", status == 0, f"status {status}")
        if status != 0:
            return
        report = json.loads((folder / f"{process}.json").read_text())
        children = [json.loads(path.read_text()) for path in folder.glob("*.json") if path.stem != str(process)]
    print(output.strip(), flush=True)
    result, counters = json.loads(output), report["counters"]
    print(json.dumps({key: value for key, value in counters.items() if key.startswith(("pg", "pages", "hwhint", "lost"))}))
    checks.that(f"{name}: every part of it happened", all(result[part] > 0 for part in (
        "forks", "chains", "pins", "gifts", "pinned_bytes_verified", "reallocs_that_moved", "cross_thread_blocks", "locks",
        "protections", "bytes_dropped")), f"{result['operations']} operations, {result['bytes_verified'] >> 20} MiB verified")
    check_report(checks, name, report)
    wrong = [equation for child in children for equation, holds in child["identities"].items() if not holds]
    checks.that(f"{name}: every identity holds in the children", not wrong, f"{len(children)} reports; {wrong}")
    success = counters["pgpromote_success"]
    wanted = PAGES_MOVED * seconds // 20
    checks.that(f"{name}: pages travel, up by us and down by another", wanted <= success < moved,
                f"{success} pages promoted, {moved} migrated by the kernel")
    checks.that(f"{name}: pinned pages stay and are counted", counters["pgpromote_fail_busy"] > 0,
                f"{counters['pgpromote_fail_busy']} busy, {counters['pgpromote_fail_access']} shared with a child")
    checks.that(f"{name}: the program's descriptors are its own", result["descriptors_before"] == result["descriptors_after"],
                f"{result['descriptors_before']} / {result['descriptors_after']}")
    checks.that(f"{name}: no thread of the program is left", sorted(result["threads_left"]) == [*THREADS_OF_LIBRARY, "soak"],
                str(result["threads_left"]))
    checks.that(f"{name}: no process is left", "soak" not in names_of_processes())


for placement in PLACEMENTS:
    check_soak(placement or "first touch", max(1, options.seconds // len(PLACEMENTS)), PLACEMENT=placement)
checks.end()
