# SPDX-License-Identifier: Apache-2.0
"""What is run: the workloads, and the configurations that each is run in. Sizes are those of the emulated machine (DRAM
nodes of 3 GiB, 2 GiB of CXL, one virtual CPU a DRAM node); README.md says how they were chosen."""
from dataclasses import dataclass

from machine import Hog


@dataclass(frozen=True)
class Configuration:
    """Who places and moves memory. `memory` is a program's --memory-node; empty: where the workload wants it."""
    name: str
    numa_balancing: int = 0      # kernel.numa_balancing: 0 off, 2 memory tiering
    demotion: bool = False       # by the kernel, where the workload does not want it for all
    memory: str = ""
    library: bool = False
    environment: tuple = ()      # (name, value) of the library's settings, without PGHOT_
    undisturbed: bool = False    # no hog, nothing pushed down: the bound


NUMAB0 = Configuration("NUMAB0")
NUMAB2 = Configuration("NUMAB2", numa_balancing=2, demotion=True)
INTERLEAVE = Configuration("interleave", memory="interleave")
LIBPGHOT = Configuration("libpghot", library=True)
DRAM = Configuration("DRAM from the start", memory="touch", undisturbed=True)
FIXED = Configuration("libpghot, node 0", library=True, environment=(("TARGET_NID", "0"),))
ALTERNATE = Configuration("libpghot, alternate", library=True, environment=(("TARGET_NID", "alternate"),))
MISPLACED = Configuration("libpghot, misplaced", library=True,
                          environment=(("TARGET_NID", "0"), ("MISPLACED", "1")))


@dataclass(frozen=True)
class Workload:
    name: str
    what: str
    program: str
    arguments: tuple
    quick: tuple                     # arguments that make it short: does it run, and end where it should?
    configurations: tuple
    memory: str = "2"                # where the memory lies at the start; empty: the program has no such option
    hot_sets: tuple = ("hot",)       # watched sets whose time until 90 % are local counts: the latest
    hogs: tuple = ()
    demotion: bool = False           # the kernel's, on for all configurations
    pushed: bool = False             # stopped when ready, pushed to the lower node, continued
    ranks: int = 0                   # under mpirun; rank r runs on node r % 2
    same_result: bool = True         # the program's checksum does not depend on who wins a race
    by_phase: bool = False           # a table of the phases too
    environment: tuple = ()          # for the library, in all configurations
    most_rounds: int = 1000          # of long runs whose figure hardly scatters


UNIFORM = ("--threads", "1", "--cpu-node", "0", "--pattern", "uniform")
ZIPF = ("--threads", "1", "--cpu-node", "0", "--pattern", "zipf")
# A machine whose DRAM is somebody else's but for about 200 MiB on node 0: the kernel's watermarks (min, low and high are
# about 44, 55 and 66 MiB on a node of 3 GiB) come off what is left free. Demotion is on for all configurations of a full
# machine, as in the published runs. Where it is off, kswapd finds nothing to do on a full node, gives up after 16 tries,
# and stays so: the next run's kernel promotion would wait for it in vain.
LITTLE_DRAM = (Hog(0, "256M"), Hog(1, "80M"))

WORKLOADS = (
    Workload("uniform-128", "the published micro-benchmark: random accesses to 128 MiB on the CXL node", "tier_bench",
             (*UNIFORM, "--bytes", "128M", "--accesses", "10M"), ("--bytes", "32M", "--accesses", "2M"),
             (NUMAB0, NUMAB2, INTERLEAVE, LIBPGHOT, DRAM)),
    Workload("uniform-512", "the same on 512 MiB", "tier_bench",
             (*UNIFORM, "--bytes", "512M", "--accesses", "10M"), ("--bytes", "32M", "--accesses", "2M"),
             (NUMAB0, NUMAB2, LIBPGHOT, DRAM)),
    Workload("uniform-long", "128 MiB again, about ten times as long as it takes to converge", "tier_bench",
             (*UNIFORM, "--bytes", "128M", "--accesses", "30M"), ("--bytes", "32M", "--accesses", "2M"),
             (NUMAB2, LIBPGHOT, DRAM)),
    Workload("zipf", "skewed accesses to 512 MiB, born by first touch where about 200 MiB of DRAM are to be had", "tier_bench",
             (*ZIPF, "--bytes", "512M", "--accesses", "12M"), ("--bytes", "256M", "--accesses", "1M"),
             (NUMAB0, NUMAB2, INTERLEAVE, LIBPGHOT, DRAM), memory="touch", hogs=LITTLE_DRAM, demotion=True),
    Workload("hot-set", "a hot window of 48 MiB in 256 MiB that moves on twice", "hot_set_bench",
             ("--cpu-node", "0"), ("--bytes", "48M", "--window-bytes", "8M", "--accesses", "2500K"),
             (NUMAB0, NUMAB2, LIBPGHOT, DRAM), hot_sets=("window 1", "window 2", "window 3"), by_phase=True),
    Workload("two-groups", "a thread on each DRAM node, 48 MiB private to each and 24 MiB of both", "tier_bench",
             ("--threads", "2", "--groups", "2", "--bytes", "96M", "--shared-bytes", "24M", "--accesses", "12M"),
             ("--bytes", "32M", "--shared-bytes", "8M", "--accesses", "6M"), (NUMAB0, NUMAB2, INTERLEAVE, LIBPGHOT, DRAM),
             hot_sets=("private 0", "private 1"), same_result=False),
    Workload("inference", "prefill and decode over 128 MiB of weights under MPOL_PREFERRED_MANY of a node that an idle "
             "neighbour keeps full", "inference_bench", ("--cpu-node", "0", "--prefer", "0"),
             ("--repetitions", "2", "--tokens", "1", "--operations", "200"), (NUMAB0, NUMAB2, LIBPGHOT, DRAM),
             hogs=(Hog(0, "80M", lock=False), Hog(1, "80M", lock=False)), demotion=True, by_phase=True),
    Workload("graph", "breadth-first searches over a power-law graph by two threads, pushed down after construction",
             "graph_bench", (), ("--vertices", "16K", "--edges", "128K"), (NUMAB0, NUMAB2, LIBPGHOT, DRAM),
             memory="", hot_sets=("vertices", "neighbours"), pushed=True, by_phase=True),
    Workload("graph-ranks", "the same by two MPI ranks", "graph_ranks_bench", (), ("--vertices", "16K", "--edges", "128K"),
             (NUMAB0, NUMAB2, LIBPGHOT, DRAM), memory="", hot_sets=("vertices", "neighbours"), pushed=True, ranks=2,
             by_phase=True, environment=(("START_MIN", "16M"),)),
    Workload("stencil", "sweeps over 64 MiB by a thread on each DRAM node, which have room for about 40 MiB each", "stencil_bench", (),
             ("--bytes", "16M", "--steps", "1"), (NUMAB0, NUMAB2, LIBPGHOT, FIXED, ALTERNATE, MISPLACED, DRAM),
             hot_sets=("slab 0", "slab 1"), hogs=(Hog(0, "104M"), Hog(1, "104M")), demotion=True),
    Workload("stream", "256 MiB used once, then a phase that computes", "stream_bench", ("--cpu-node", "0"),
             ("--bytes", "64M", "--operations", "20M"), (NUMAB0, NUMAB2, LIBPGHOT, DRAM), hot_sets=("streamed",),
             by_phase=True),
    Workload("uniform-huge", "uniform-128 on huge pages", "tier_bench",
             (*UNIFORM, "--bytes", "128M", "--accesses", "10M", "--pages", "huge"), ("--bytes", "32M", "--accesses", "2M"),
             (NUMAB0, NUMAB2, LIBPGHOT, DRAM)),
    Workload("zipf-huge", "zipf on huge pages", "tier_bench",
             (*ZIPF, "--bytes", "512M", "--accesses", "12M", "--pages", "huge"), ("--bytes", "256M", "--accesses", "1M"),
             (NUMAB0, NUMAB2, LIBPGHOT, DRAM), memory="touch", hogs=LITTLE_DRAM, demotion=True),
    Workload("ranks-2", "two ranks, 64 MiB and 5 M accesses each, one budget", "tier_bench",
             (*UNIFORM, "--bytes", "64M", "--accesses", "5M"), ("--bytes", "16M", "--accesses", "3M"),
             (NUMAB0, NUMAB2, LIBPGHOT, DRAM), ranks=2),
    Workload("ranks-4", "four ranks, 32 MiB and 2.5 M accesses each, one budget", "tier_bench",
             (*UNIFORM, "--bytes", "32M", "--accesses", "2.5M"), ("--bytes", "16M", "--accesses", "2M"),
             (NUMAB0, NUMAB2, LIBPGHOT, DRAM), ranks=4, environment=(("START_MIN", "16M"),)),
    Workload("budget-1", "one process under a budget of 16 MiB/s, 256 MiB to move", "tier_bench",
             (*UNIFORM, "--bytes", "256M", "--seconds", "17"), ("--bytes", "64M", "--seconds", "3"), (LIBPGHOT,), ranks=1,
             same_result=False, environment=(("RATE_LIMIT_MBPS", "16"),), most_rounds=3),
    Workload("budget-4", "four ranks under one budget of 16 MiB/s, 256 MiB to move together", "tier_bench",
             (*UNIFORM, "--bytes", "64M", "--seconds", "17"), ("--bytes", "16M", "--seconds", "3"), (LIBPGHOT,), ranks=4,
             same_result=False, environment=(("RATE_LIMIT_MBPS", "16"), ("START_MIN", "16M")), most_rounds=3),
)


def cpu_node_of(rank):
    return rank % 2
