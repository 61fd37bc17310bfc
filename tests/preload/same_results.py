#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one everyday job with and without the library in folders of their own: output, exit status and files must be the
same to the byte.

    same_results.py LIBRARY JOB        JOB: a name in JOBS
Exit status: 0 the same, 1 a difference (said), 77 a tool is missing (said)."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# Nothing that changes from run to run.
FIXED = {"GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z", "GIT_AUTHOR_NAME": "a",
         "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b", "GIT_CONFIG_NOSYSTEM": "1",
         "LC_ALL": "C", "PYTHONHASHSEED": "0", "HOME": "/nonexistent", "OMPI_ALLOW_RUN_AS_ROOT": "1",
         "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
PYTHON = """
import hashlib, json, re, zlib
words = [str(i * 7919 % 10007) for i in range(200000)]
table = {w: words.count(w) for w in words[:50]}
blob = zlib.compress(json.dumps(words).encode())
print(len(blob), hashlib.sha256(blob).hexdigest(), sorted(table.items())[:5], len(re.findall('9+', ' '.join(words))))
"""
# Past PGHOT_START_MIN: on a machine with one tier there still is no thread and no descriptor.
GROWN = """
import os
memory = [bytearray(40 << 20) for _ in range(6)] + [str(i) for i in range(300000)]
print([line for line in open('/proc/self/status') if line.startswith('Threads')], os.listdir('/proc/self/fd'))
"""
SHELL = """
for i in $(seq 200); do v=$(expr $i \\* 3); [ $((i % 50)) = 0 ] && echo "$i $v" | tr 0-9 a-j; done
(exit 7); echo "code $?"
ls /no/such/place; seq 1 1000 | sort -rn | head -3
cat <(echo substituted) & wait; echo problem >&2
"""
# What scripts do with output, descriptors, signals and ends of processes.
PIPELINES = """
printf 'b\\na\\nc\\n' | sort | tr a-z A-Z | sed 's/B/x/' | awk '{print NR": "$0}'
seq 100 | xargs -P 4 -n 1 expr 1 + | sort -n | tail -1
yes | head -c 1000000 | wc -c; echo "${PIPESTATUS[@]}"
exec 5>log 6>&1; echo logged >&5; echo saved >&6; exec 5>&-; cat log
coproc cat; echo to the coprocess >&${COPROC[1]}; read -r answer <&${COPROC[0]}; echo "$answer"; kill $COPROC_PID
trap 'echo trapped' USR1; kill -USR1 $$; sh -c 'kill -TERM $$' 2>/dev/null; echo "code $?"
for n in 0 1 2; do (eval "exec $n>&-"; expr 1 + 1; echo done) ; echo "code $?"; done
sh -c 'exec <&- >&- 2>&-; exec true'; echo "code $?"
timeout 0.05 sleep 5; echo "code $?"
env -i PATH=/usr/bin:/bin sh -c 'env | grep -v ^_= | sort'
find . -type f | sort; diff <(seq 3) <(seq 4); (sleep 0.01 & wait $!; echo waited)
"""
TRACED = """
strace -f -qq -e trace=none -e signal=none -o trace sh -c 'seq 1000 | sort -rn | tail -2; exit 3'; echo "code $?"; wc -l <trace; rm trace
gdb -q -nx -batch -ex 'set debuginfod enabled off' -ex 'break exit' -ex run -ex 'info threads' -ex continue --args echo hello |
    grep -v Breakpoint | tr -s ' ' | sed 's/process [0-9]*/process N/; s/LWP [0-9]*/LWP N/; s/0x[0-9a-f]*/ADDRESS/g'
"""
GIT = """
git init -q . && for i in $(seq 40); do seq $i $((i * 50)) >f$i; done && git add . && git commit -qm one &&
git mv f1 g1 && seq 3000 >f2 && git commit -qam two && git gc -q && git log --stat --format=%H | cat && git fsck --strict
rm -rf .git
"""
JOBS = {
    "python": (["python3"], ["python3", "-c", PYTHON]),
    "git": (["git", "bash"], ["bash", "-c", GIT]),
    "compiler": (["g++"], ["g++", "-std=c++20", "-O1", "-c", str(HERE / "test_malloc_family.cc"), "-I", str(HERE.parents[1]),
                           "-o", "object.o"]),
    "shell": (["bash"], ["bash", "-c", SHELL]),
    "mpi": (["mpicc", "mpirun"], ["mpirun", "--oversubscribe", "--mca", "btl", "self,vader", "-n", "2", "./mpi"]),
    "threads": (["bash"], ["bash", "-c", "grep Threads /proc/self/status; ls /proc/self/fd; exec 9</dev/null; ls /proc/self/fd"]),
    "pipelines": (["bash"], ["bash", "-c", PIPELINES]),
    "traced": (["bash", "strace", "gdb"], ["bash", "-c", TRACED]),
    "grown": (["python3"], ["python3", "-c", GROWN]),
}


def run(command, folder, library):
    environment = {**os.environ, **FIXED}
    environment.pop("LD_PRELOAD", None)
    if library:
        environment["LD_PRELOAD"] = library
    return subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=120,
                          check=False)


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def main():
    library, job = os.path.realpath(sys.argv[1]), sys.argv[2]
    needed, command = JOBS[job]
    missing = [tool for tool in needed if not shutil.which(tool)]
    if missing:
        print(f"skipped: {' '.join(missing)} is missing")
        return 77
    with tempfile.TemporaryDirectory() as scratch:
        results = []
        for name in ("plain", "preloaded"):
            # The same path for both, since compilers and git may write it down.
            folder = pathlib.Path(scratch) / "work"
            folder.mkdir()
            if job == "mpi":
                subprocess.run(["mpicc", "-O1", "-o", str(folder / "mpi"), str(HERE / "mpi_exchange.c")], check=True)
            done = run(command, folder, library if name == "preloaded" else None)
            results.append({"status": done.returncode, "output": done.stdout, "errors": done.stderr, **contents(folder)})
            shutil.rmtree(folder)
    plain, preloaded = results
    different = [what for what in plain.keys() | preloaded.keys() if plain.get(what) != preloaded.get(what)]
    for what in different:
        print(f"{what} differs:\n  without {plain.get(what)!r:.2000}\n  with    {preloaded.get(what)!r:.2000}")
    if plain["status"] != 0:
        print(f"the job itself fails here: {plain['errors']!r:.2000}")
    return 1 if different or plain["status"] != 0 else 0


sys.exit(main())
