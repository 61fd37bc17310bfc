# SPDX-License-Identifier: Apache-2.0
"""Whole programs of the distribution, each on a job whose input is made here, the same every time. What a program
prints must be the same under every allocator; hpcc and git are checked by their results."""
import hashlib
import os
import pathlib
import random
import re
import shutil
import subprocess
import tempfile
import time

from allocators import NONE
from jobs import Failed, clean_environment, end, finish, read_cost

FIXED = {"LC_ALL": "C", "PYTHONHASHSEED": "0", "PERL_HASH_SEED": "0", "PERL_PERTURB_KEYS": "0", "GIT_CONFIG_NOSYSTEM": "1",
         "HOME": "/nonexistent", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_NAME": "a",
         "GIT_COMMITTER_EMAIL": "a@b", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


class Program:
    """A command in a folder that holds its input. `size` scales the work: 1, or less for --quick."""
    by_wall = False
    is_program = True
    name = ""
    needs = {}               # command -> Debian package
    settings = {}
    quick_size = 0.05

    def __init__(self):
        self._input = None
        self._printed = None

    def missing_for(self, _variant):
        packages = [package for command, package in self.needs.items() if not shutil.which(command)]
        return f"install {' '.join(packages)}" if packages else ""

    def make_input(self, folder, size):
        """Writes what all runs read."""

    def command(self):
        raise NotImplementedError

    def check(self, folder, printed):
        """Raises Failed for a wrong result. By default: what it prints is the same every time."""
        digest = hashlib.sha256(printed).hexdigest()
        self._printed = self._printed or digest
        if not printed or digest != self._printed:
            raise Failed("prints something else than in the first run")

    def run(self, machine, variant):
        if self._input is None:
            self._input = pathlib.Path(tempfile.mkdtemp(dir=machine.scratch))
            self.make_input(self._input, self.quick_size if machine.quick else 1)
        with tempfile.TemporaryDirectory(dir=machine.scratch) as parent:
            folder = shutil.copytree(self._input, pathlib.Path(parent) / "work", symlinks=True)
            return self.run_in(machine, variant, folder)

    def run_in(self, machine, variant, folder):
        cost, printed = machine.run(self.command(), variant, folder, {**FIXED, **self.settings})
        self.check(folder, printed)
        return cost


PYTHON = """
import json
class Node:
    def __init__(self, key, left=None, right=None):
        self.key, self.left, self.right = key, left, right
def tree(depth, key=1):
    return Node(str(key), tree(depth - 1, 2 * key), tree(depth - 1, 2 * key + 1)) if depth else None
def total(node):
    return int(node.key) + total(node.left) + total(node.right) if node else 0
print(total(tree({depth})))
records = [dict(id=i, name='name %d' % (i * 7919 % 10007), tags=['t%d' % (i % k) for k in range(2, 9)], at=dict(x=i / 7, y=-i))
           for i in range({records})]
text = json.dumps(records)
back = json.loads(text)
groups = dict()
for record in back:
    groups.setdefault(record['name'][:7], []).append(record)
print(len(text), back == records, sorted((len(some), name) for name, some in groups.items())[-3:])
words = ' '.join(record['name'] for record in back).split()
print(len(set(words)), sorted(words, key=lambda word: (word[::-1], word))[:3])
"""


class Python(Program):
    name = "python3"
    needs = {"/usr/bin/python3": "python3"}    # the distribution's: others in the path may be wrappers

    def make_input(self, folder, size):
        (folder / "job.py").write_text(PYTHON.format(depth=16 if size == 1 else 10, records=int(25000 * size)), "ascii")

    def command(self):
        return ["/usr/bin/python3", "-s", "job.py"]


class PythonMalloc(Python):
    """Python's objects from malloc: its own allocator for small ones takes them otherwise."""
    name = "python3/malloc"
    settings = {"PYTHONMALLOC": "malloc"}


PERL = r"""
my (%count, %list, @parts);
for my $i (1 .. SIZE) {
    my $key = join '-', map { ($i * $_) % 9973 } 1 .. 4;
    $count{$key} += length $key;
    push @{$list{$i % 1009}}, { key => $key, text => 'x' x ($i % 97) };
    $parts[$i % 501] .= "$key;";
}
my $total = 0;
for my $name (sort { $a <=> $b } keys %list) {
    $total += length $_->{text} for grep { $_->{key} =~ /7-\d*1/ } @{$list{$name}};
}
my $text = join "\n", map { scalar reverse } sort map { split /;/ } @parts;
$text =~ s/(\d+)-(\d+)/$2-$1/g;
print scalar(keys %count), " $total ", length $text, " ", substr($text, 0, 40), "\n";
"""


class Perl(Program):
    name = "perl"
    needs = {"perl": "perl"}

    def make_input(self, folder, size):
        (folder / "job.pl").write_text(PERL.replace("SIZE", str(int(150000 * size))), "ascii")

    def command(self):
        return ["perl", "job.pl"]


SQLITE = """
.bail on
PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF;
CREATE TABLE item(id INTEGER PRIMARY KEY, class INTEGER, name TEXT, note TEXT);
BEGIN;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
INSERT INTO item
    SELECT i, i * 7919 % 1009, printf('name %d', i * 104729 % 1000003), hex(i * i) || printf('%.*c', i % 60, 'n') FROM n;
COMMIT;
CREATE INDEX by_name ON item(name); CREATE INDEX by_class ON item(class, name);
SELECT class, count(*), min(name), group_concat(substr(note, 1, 3)) FROM item GROUP BY class ORDER BY 2 DESC, 1 LIMIT 20;
SELECT count(*), sum(length(a.note || b.name)) FROM item a JOIN item b ON b.class = a.class AND b.name > a.name WHERE a.id % 97 = 0;
UPDATE item SET note = note || name WHERE class < 100; DELETE FROM item WHERE class > 900;
SELECT name FROM item ORDER BY substr(note, -5), id LIMIT 5;
PRAGMA integrity_check;
"""


class Sqlite(Program):
    name = "sqlite3"
    needs = {"sqlite3": "sqlite3"}

    def make_input(self, folder, size):
        (folder / "job.sql").write_text(SQLITE.format(rows=int(100000 * size)), "ascii")

    def command(self):
        return ["sqlite3", "-init", "/dev/null", "file.db", ".read job.sql"]


COMPILED_HEAD = """
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>
template <int N> struct Tag { std::string name; int value = N; bool operator<(const Tag& o) const { return value < o.value; } };
"""
COMPILED_PART = """
int part_{i}(const std::vector<Tag<{i}>>& given) {{
    std::map<Tag<{i}>, std::vector<std::unique_ptr<std::string>>> groups;
    std::unordered_map<std::string, std::tuple<int, Tag<{i}>>> by_name;
    for (const auto& tag : given) {{
        groups[tag].push_back(std::make_unique<std::string>(tag.name));
        by_name.emplace(tag.name, std::make_tuple({i}, tag));
    }}
    std::variant<int, std::string, Tag<{i}>> last = given.empty() ? Tag<{i}>{{}} : given.back();
    std::function<int(int)> add = [&](int n) {{ return n + static_cast<int>(groups.size() + by_name.size() + last.index()); }};
    auto copy = given;
    std::stable_sort(copy.begin(), copy.end());
    return std::accumulate(copy.begin(), copy.end(), 0, [&](int sum, const auto& tag) {{ return add(sum) + tag.value; }});
}}
"""


class Compiler(Program):
    name = "g++"
    needs = {"g++": "g++"}

    def make_input(self, folder, size):
        parts = "".join(COMPILED_PART.format(i=i) for i in range(max(1, int(2 * size))))
        (folder / "job.cc").write_text(COMPILED_HEAD + parts, "ascii")

    def command(self):
        return ["g++", "-std=c++20", "-O1", "-c", "job.cc", "-o", "job.o"]

    def check(self, folder, printed):
        super().check(folder, (folder / "job.o").read_bytes())


class Git(Program):
    """Packs and deltas some thousand loose objects."""
    name = "git gc"
    needs = {"git": "git"}

    def make_input(self, folder, size):
        self._git(folder, "init", "-q", "-b", "main", ".")
        # Unpacked, as commits made one by one would be.
        self._git(folder, "-c", "fastimport.unpackLimit=1000000", "fast-import", "--quiet", given=self._history(int(400 * size)))
        self._objects = self._count(folder, "count")

    @staticmethod
    def _history(commits):
        """A stream for fast-import: in each commit four files of eighty change some of their lines."""
        draw = random.Random(1)
        files = [[f"line {number} of {file}: {draw.getrandbits(160):x}" for number in range(150)] for file in range(80)]
        stream = []
        for commit in range(commits):
            stream.append(f"commit refs/heads/main\ncommitter a <a@b> {1700000000 + commit} +0000\ndata 2\nc\n")
            for file in draw.sample(range(80), 4):
                for number in draw.sample(range(150), 12):
                    files[file][number] = f"line {number} in {commit}: {draw.getrandbits(160):x}"
                text = "\n".join(files[file]) + "\n"
                stream.append(f"M 100644 inline folder{file % 8}/file{file}\ndata {len(text)}\n{text}\n")
        return "".join(stream).encode("ascii")

    @staticmethod
    def _git(folder, *arguments, given=None):
        return subprocess.run(["git", *arguments], cwd=folder, env={**clean_environment(), **FIXED}, input=given,
                              capture_output=True, check=True).stdout.decode()

    def _count(self, folder, what):
        return int(re.search(rf"^{what}: (\d+)$", self._git(folder, "count-objects", "-v"), re.MULTILINE).group(1))

    def command(self):
        return ["git", "-c", "pack.threads=2", "gc", "--quiet"]

    def check(self, folder, printed):
        packed = self._count(folder, "in-pack")
        if packed != self._objects or packed == 0:
            raise Failed(f"packed {packed} of {self._objects} objects")


class Redis(Program):
    """The server under the allocator; its client is not, and does not count."""
    name = "redis-server"
    needs = {"redis-server": "redis-server", "redis-benchmark": "redis-tools"}

    def __init__(self):
        super().__init__()
        self._requests = 0

    def missing_for(self, variant):
        if variant.name == NONE:
            return "Debian's redis-server is linked with jemalloc"
        return super().missing_for(variant)

    def make_input(self, folder, size):
        self._requests = int(100000 * size)

    def run_in(self, machine, variant, folder):
        cost_file = folder / "cost.json"
        server = machine.start(["redis-server", "--port", "0", "--unixsocket", "socket", "--save", "", "--appendonly", "no",
                                "--daemonize", "no", "--io-threads", "1"], variant, cost_file, folder, FIXED)
        try:
            self._wait_for(folder / "socket", server)
            for arguments in (["-t", "set,get,lpush,hset,sadd,zadd", "-d", "200"], ["-t", "set", "-d", "3000"]):
                self._client(folder, "redis-benchmark", "-s", "socket", "-q", "-P", "16", "-r", "50000", "-n",
                             str(self._requests), *arguments)
            self._client(folder, "redis-cli", "-s", "socket", "shutdown", "nosave")
            finish(server)
        finally:
            end(server)
        return read_cost(cost_file)

    @staticmethod
    def _wait_for(socket, server):
        while not socket.exists():
            if server.poll() is not None:
                finish(server)
                raise Failed("the server ended at once")
            time.sleep(0.01)

    @staticmethod
    def _client(folder, *command):
        done = subprocess.run(command, cwd=folder, env=clean_environment(), stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=120, check=False)
        if done.returncode != 0 or b"rror" in done.stdout + done.stderr:
            raise Failed(f"{command[0]}: {(done.stderr or done.stdout).decode(errors='replace')[-200:]}")


HPCC_INPUT = """HPLinpack benchmark input file

HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
{n}          Ns
1            # of NBs
32           NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
1            Ps
2            Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
##### This line (no. 32) is ignored (it serves as a separator). ######
0            Number of additional problem sizes for PTRANS
1200         values of N
0            number of additional blocking sizes for PTRANS
40           values of NB
"""


class Hpcc(Program):
    """All of HPC Challenge on two ranks; the library goes into mpirun as well."""
    name = "hpcc"
    needs = {"hpcc": "hpcc", "mpirun": "openmpi-bin"}
    quick_size = 0.5

    def make_input(self, folder, size):
        (folder / "hpccinf.txt").write_text(HPCC_INPUT.format(n=int(350 * size)), "ascii")

    def command(self):
        return ["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,vader", "-np", "2", "hpcc"]

    def check(self, folder, printed):
        report = folder / "hpccoutf.txt"
        text = report.read_text("ascii", errors="replace") if report.exists() else ""
        if not re.search(r"^Success=1$", text, re.MULTILINE) or not re.search(r"1 tests completed and passed", text):
            raise Failed("hpccoutf.txt does not say Success=1 with a passed residual")


def all_programs():
    return [Python(), PythonMalloc(), Perl(), Sqlite(), Compiler(), Git(), Redis(), Hpcc()]
