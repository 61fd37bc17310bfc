#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: narrow_places.py LIBRARY WORK MEMORY_LIMIT
Namespaces, roots without /proc and /sys, read-only file systems, one processor, other address layouts: programs give the
same there with the library as without. WORK is ordinary_work, MEMORY_LIMIT test_memory_limit."""
import contextlib
import os
import pathlib
import resource
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from with_and_without import check, end, run, same, skip    # noqa: E402

LIBRARY, WORK, MEMORY_LIMIT = (os.path.realpath(argument) for argument in sys.argv[1:])
RIGHT = (7, b"all bytes right\n")
PROGRAMS = {"work": [WORK, "8", "1"], "shell": ["bash", "-c", "for i in 1 2; do echo $(expr $i + $i) | cat; done; exit 4"]}
# Settings for which the library would like threads, files, /proc and /sys.
ASKING = {"PGHOT_PLACEMENT": "slow", "PGHOT_START_MIN": "0"}


def under_library(**settings):
    """Starts the command that follows, and nothing before it, under the library."""
    return ["env", f"LD_PRELOAD={LIBRARY}", *(f"{name}={value}" for name, value in settings.items())]


def possible(name, wrapper):
    status, _, errors = run([*wrapper, "true"], None)
    if status != 0:
        skip(name, errors.decode(errors="replace").strip() or f"status {status}")
    return status == 0


def everything_is_the_same(name, wrapper):
    """`wrapper` starts the command that follows it in the narrow place."""
    if not possible(name, wrapper):
        return
    for program, command in PROGRAMS.items():
        same(f"{program}, {name}", [*wrapper, *command], LIBRARY)
    asking = run([*wrapper, *under_library(**ASKING), *PROGRAMS["work"]], None)
    check(f"work with settings, {name}", asking[:2] == RIGHT and asking[2].count(b"\n") <= 1, asking)


def own_mounts(script):
    """sh SCRIPT in a mount namespace of its own, then the command."""
    return ["unshare", "--mount", "sh", "-c", f'{script} && exec "$@"', "sh"]


def namespaces():
    everything_is_the_same("no /proc and no /sys", own_mounts("mount -t tmpfs none /proc && mount -t tmpfs none /sys"))
    everything_is_the_same("a read-only file system", own_mounts("mount -o remount,bind,ro /"))
    everything_is_the_same("processes numbered anew", ["unshare", "--pid", "--fork", "--mount-proc"])
    everything_is_the_same("a user namespace", ["unshare", "--user", "--map-root-user"])
    everything_is_the_same("a user namespace without a name", ["unshare", "--user"])
    everything_is_the_same("no network, no shared memory, another host", ["unshare", "--net", "--ipc", "--uts"])


def reports_in_narrow_places(folder):
    report = folder / "report"
    no_proc = own_mounts("mount -t tmpfs none /proc && mount -t tmpfs none /sys")
    if possible("a report without /proc", no_proc):
        done = run([*no_proc, *under_library(PGHOT_REPORT=report), *PROGRAMS["work"]], None)
        check("a report without /proc", done == (*RIGHT, b"") and report.exists(), done)
    read_only = own_mounts("mount -o remount,bind,ro /")
    if possible("a report on a read-only file system", read_only):
        done = run([*read_only, *under_library(PGHOT_REPORT="/report-of-pghot-tests"), *PROGRAMS["work"]], None)
        check("a report on a read-only file system costs a line",
              done[:2] == RIGHT and done[2].count(b"\n") == 1 and b"EROFS" in done[2], done)


def a_root_with_nothing_but_libraries(folder):
    root = folder / "root"
    root.mkdir()
    for name in ("bin", "lib", "lib64", "usr"):
        place = pathlib.Path("/", name)
        if place.is_symlink():
            (root / name).symlink_to(os.readlink(place))
        elif place.is_dir():
            (root / name).mkdir()
    binds = " && ".join(f"mount --bind /{name} {root}/{name}" for name in ("bin", "lib", "lib64", "usr")
                        if (root / name).is_dir() and not (root / name).is_symlink())
    library, work = (shutil.copy(file, root) for file in (LIBRARY, WORK))
    inside = own_mounts(f"{binds} && chroot {root} true")
    if not possible("an empty root", inside):
        return
    command = [*inside, "chroot", str(root), "/usr/bin/env"]
    arguments = ["/" + os.path.basename(work), "8", "1"]
    plain = run([*command, *arguments], None)
    ours = run([*command, f"LD_PRELOAD=/{os.path.basename(library)}", "PGHOT_PLACEMENT=slow", *arguments], None)
    check("an empty root", plain == (*RIGHT, b"") and ours[:2] == RIGHT and ours[2].count(b"\n") <= 1, ours)


def no_overcommit(folder):
    """The allocator's way of working where it reads that memory may not be overcommitted, whatever the kernel does."""
    told = folder / "overcommit_memory"
    told.write_text("2\n")
    wrapper = own_mounts(f"mount --bind {told} /proc/sys/vm/overcommit_memory")
    everything_is_the_same("told not to overcommit", wrapper)
    if possible("limits without overcommit", wrapper):
        for limited in ("as", "data"):
            done = run([*wrapper, *under_library(LIMITED=limited), MEMORY_LIMIT], None)
            check(f"limits of memory ({limited}), told not to overcommit", done[0] == 0, done[1][-600:] if done[0] else 0)


@contextlib.contextmanager
def processor_set():
    """A group of processes that may run on processor 0 only; None where none can be made."""
    for base, files in ((pathlib.Path("/sys/fs/cgroup/cpuset"), {"cpuset.cpus": "0", "cpuset.mems": "0"}),
                        (pathlib.Path("/sys/fs/cgroup"), {"cpuset.cpus": "0"})):
        group = base / f"pghot-tests-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            for name, value in files.items():
                (group / name).write_text(value)
        except OSError:
            group.rmdir()
            continue
        yield group
        group.rmdir()
        return
    yield None


def few_processors():
    everything_is_the_same("one processor", ["taskset", "-c", "0"])
    with processor_set() as group:
        if group is None:
            return skip("a set of one processor", "no cpuset can be made")
        enter = f'echo $$ >{group}/cgroup.procs && exec "$@"'
        everything_is_the_same("a set of one processor", ["sh", "-c", enter, "sh"])


def other_address_layouts():
    for name, options in (("addresses not randomised", ["-R"]), ("the old layout", ["-R", "-L"]),
                          ("page zero mapped", ["-Z"])):
        everything_is_the_same(name, ["setarch", *options])
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    same("work, stacks that grow without limit", PROGRAMS["work"], LIBRARY,
         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, unlimited))


with tempfile.TemporaryDirectory() as scratch:
    namespaces()
    reports_in_narrow_places(pathlib.Path(scratch))
    a_root_with_nothing_but_libraries(pathlib.Path(scratch))
    no_overcommit(pathlib.Path(scratch))
few_processors()
other_address_layouts()
end()
