# SPDX-License-Identifier: Apache-2.0
"""Checks of tests/rig/test_model; runs in the rig: model.py TIER_BENCH."""
import ctypes
import json
import mmap
import subprocess
import sys

BENCH = sys.argv[1]
MODEL = json.loads(subprocess.run([BENCH, "--model"], check=True, stdout=subprocess.PIPE).stdout)
failed = passed = 0


def check(good, what):
    global failed, passed
    failed += not good
    passed += bool(good)
    print(f"{'ok  ' if good else 'FAIL'} {what}", flush=True)


def bench(*arguments):
    command = [BENCH, "--accesses", "1M", *map(str, arguments)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def misses(run, node):
    return sum(cpu[f"misses_node{node}"] for cpu in run["rig"]["cpus"].values())


def total(run, name):
    return sum(cpu[name] for cpu in run["rig"]["cpus"].values())


def base_latency_ns(run, node):
    """Mean latency of a miss without queueing; L3 hits are in the sum and taken out."""
    l3_ns = total(run, "l3_hits") * MODEL["l3_hit_cycles"] * 1000 // MODEL["cycles_per_us"]
    return (total(run, "memory_ns") - total(run, "queue_ns") - l3_ns) / misses(run, node)


def queue_ns(run, node):
    return total(run, "queue_ns") / misses(run, node)


def set_numa_balancing(mode):
    with open("/proc/sys/kernel/numa_balancing", "w", encoding="ascii") as file:
        file.write(str(mode))


for cpu_node, memory_node, name in ((0, 0, "local_dram_ns"), (1, 1, "local_dram_ns"), (0, 1, "remote_dram_ns"),
                                    (1, 0, "remote_dram_ns"), (0, 2, "cxl_ns"), (1, 2, "cxl_ns")):
    run = bench("--cpu-node", cpu_node, "--memory-node", memory_node)
    latency = base_latency_ns(run, memory_node)
    check(abs(latency - MODEL[name]) < 0.02 * MODEL[name],
          f"node {memory_node} from node {cpu_node}: {latency:.1f} ns, model {MODEL[name]}")
    check(misses(run, memory_node) > 0.9 * run["accesses"] and run["pages_per_node"] == {str(memory_node): 32768},
          f"  {misses(run, memory_node)} of {run['accesses']} accesses miss, all pages there")

one, two = (bench("--threads", n, "--cpu-node", 0) for n in (1, 2))
four = bench("--threads", 4, "--groups", 2)
waits = [queue_ns(run, 2) for run in (one, two, four)]
check(waits[0] < waits[1] < waits[2] and waits[2] > 2 * waits[0],
      f"waiting at the CXL node rises with 1, 2, 4 CPUs: {', '.join(f'{wait:.0f}' for wait in waits)} ns")
check([group["pages_per_node"] for group in four["groups"]] == [{"2": 16384}] * 2, "two groups have half the pages each")

first, second = (bench("--seed", 5) for _ in range(2))
check(first["checksum"] == second["checksum"] and first["accesses"] == second["accesses"], "a seed repeats its accesses")
difference = abs(first["modelled_us"] - second["modelled_us"]) / first["modelled_us"]
check(difference < 0.01, f"and its modelled time, within {100 * difference:.3f} %")
zipf, uniform = bench("--pattern", "zipf"), bench()
check(total(zipf, "l3_hits") + total(zipf, "l2_hits") > 2 * (total(uniform, "l3_hits") + total(uniform, "l2_hits")),
      "zipf meets the caches more often than uniform")
for kind in ("heap", "mmap", "bss"):
    check(bench("--memory", kind)["pages_per_node"] == {"2": 32768}, f"{kind} memory is placed on node 2")


def moving_calls():
    with open("/proc/rig_counters", encoding="ascii") as file:
        return int(file.readline().split()[1])


def move_one_page(node):
    """move_pages(2) of one page of ours; its status."""
    libc = ctypes.CDLL(None, use_errno=True)
    memory = mmap.mmap(-1, 4096)
    memory[0] = 1
    page = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
    target, status = ctypes.c_int(node), ctypes.c_int(-1)
    libc.syscall(279, 0, ctypes.c_ulong(1), ctypes.byref(page), ctypes.byref(target), ctypes.byref(status), 2)
    return status.value


before = moving_calls()
moved = [move_one_page(2) for _ in range(3)]
check(moved == [2] * 3 and moving_calls() - before == 3, f"3 move_pages calls are {moving_calls() - before} moving calls")

set_numa_balancing(2)
run = bench("--accesses", "10M")
set_numa_balancing(0)
counts = run["vmstat"]
# A page that is being touched elsewhere may be left behind once in a while.
check(counts["pgpromote_success"] >= 32760 and run["pages_per_node"].get("0", 0) >= 32760,
      f"NUMAB2 promotes every page: {counts['pgpromote_success']}")
check(counts["pgpromote_candidate"] == 0, f"none on the rate-limited path: {counts['pgpromote_candidate']}")
check(run["rig"]["machine"]["moving_calls"] == 0, "and none by a moving call")
print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
