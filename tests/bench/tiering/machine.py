# SPDX-License-Identifier: Apache-2.0
"""The machine that a workload finds: the kernel's settings, nodes that are full, memory that is pushed down, and how
fast pages move. Runs in the rig as root."""
import contextlib
import ctypes
import json
import os
import pathlib
import re
import subprocess
import threading
import time
from dataclasses import dataclass

NUMA_BALANCING = pathlib.Path("/proc/sys/kernel/numa_balancing")
DEMOTION = pathlib.Path("/sys/kernel/mm/numa/demotion_enabled")
RIG_COUNTERS = pathlib.Path("/proc/rig_counters")
SYS_MIGRATE_PAGES = 256    # x86-64; libc has no wrapper
DRAM_NODES, LOWER_NODES = 0b011, 0b100
PAGE_BYTES = 4096
MIB = 1 << 20


def in_rig():
    return RIG_COUNTERS.exists()


def drop_caches():
    """No page cache of earlier runs on the DRAM nodes."""
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3", encoding="ascii")


def promote(numa_balancing):
    """The kernel's own promotion: 0 off, 2 on."""
    NUMA_BALANCING.write_text(str(numa_balancing), encoding="ascii")


@contextlib.contextmanager
def demotion(wanted):
    """The kernel's demotion as asked; afterwards it moves nothing by itself, up or down."""
    DEMOTION.write_text("true" if wanted else "false", encoding="ascii")
    try:
        yield
    finally:
        promote(0)
        DEMOTION.write_text("false", encoding="ascii")


@dataclass(frozen=True)
class Hog:
    """Memory that somebody else holds on a node."""
    node: int
    leave: str             # what stays free, as memory_hog reads it
    lock: bool = True      # False: the kernel may demote it, as an idle neighbour's memory


@contextlib.contextmanager
def hogs(program, wanted):
    """Fills the nodes one after the other and holds them; yields what each program said."""
    with contextlib.ExitStack() as stack:
        said = []
        for hog in wanted:
            command = [program, "--node", str(hog.node), "--leave", hog.leave, *(["--lock"] if hog.lock else [])]
            process = stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            stack.callback(process.stdin.close)
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"{' '.join(command)}: ended with status {process.wait()}")
            said.append(json.loads(line))
        yield said


def push_down(process):
    """Moves all pages of the process from the DRAM nodes to the lower node. Pages that could not be moved, or OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    left = libc.syscall(SYS_MIGRATE_PAGES, process, 64, ctypes.byref(ctypes.c_ulong(DRAM_NODES)),
                        ctypes.byref(ctypes.c_ulong(LOWER_NODES)))
    if left < 0:
        raise OSError(ctypes.get_errno(), f"migrate_pages of process {process}")
    return left


def descendants(process):
    """The process and all below it."""
    found = [process]
    for task in pathlib.Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):    # a task that has ended
            for child in task.read_text().split():
                found += descendants(int(child))
    return found


def state_of(process):
    """R, S, T and so on; empty when the process is gone."""
    try:
        stat = pathlib.Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return ""
    return stat[stat.rindex(")") + 2]


def wait_until_stopped(root, count, is_over, limit_s=180):
    """The first `count` processes at or below `root` that have stopped themselves. Raises when `is_over()` first."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        stopped = [process for process in descendants(root) if state_of(process) == "T"]
        if len(stopped) >= count:
            return stopped
        if is_over():
            raise RuntimeError("a program ended before it was ready")
        time.sleep(0.02)
    raise RuntimeError(f"fewer than {count} programs were ready after {limit_s} s")


class MoveRate:
    """How many pages had been moved at which time: (seconds, pages) pairs, about four a second, while the block runs."""
    INTERVAL_S = 0.25

    def __init__(self):
        self.points = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self):
        wanted = re.compile(rb"^pgmigrate_success (\d+)$", re.MULTILINE)
        vmstat = os.open("/proc/vmstat", os.O_RDONLY)
        while not self._over.wait(self.INTERVAL_S):
            pages = int(wanted.search(os.pread(vmstat, 1 << 16, 0))[1])
            self.points.append((time.monotonic(), pages))
        os.close(vmstat)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()
