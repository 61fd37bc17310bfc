#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: memory_hooks.py LIBRARY HOOKS
The memory hooks of UCX and Open MPI work with the library as without, by their own tests, and hear of every page that the
heap gives back: a registration cache that misses one sends stale data. HOOKS is memory_hooks."""
import os
import pathlib
import resource
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from with_and_without import SKIP, check, end, run, skip    # noqa: E402

LIBRARY, HOOKS = (os.path.realpath(argument) for argument in sys.argv[1:])
ROOT_MAY = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# Gives up on the C library of today, malloc half replaced: memory must go on working, nothing is heard.
MALLOC_TOO = "UCX replaces malloc as well"
WAYS = {
    "UCX patches the C library": (["ucx"], {}),
    "UCX patches the calls of libraries": (["ucx"], {"UCX_MEM_MMAP_HOOK_MODE": "reloc"}),
    MALLOC_TOO: (["ucx_all_events"], {}),
    "Open MPI patches the C library": (["open_mpi"], ROOT_MAY),
}
# How the heap gives pages back: advice, unmapping, and both for blocks with a placement.
HEAPS = {"": ({}, False), ", limited": ({}, True),
         ", placed": ({"PGHOT_MODE": "off", "PGHOT_PLACEMENT": "size>=1M:node:0"}, False),
         ", placed and limited": ({"PGHOT_MODE": "off", "PGHOT_PLACEMENT": "size>=1M:node:0"}, True)}


def limit_address_space():
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))


for name, (arguments, environment) in WAYS.items():
    plain = run([HOOKS, *arguments], None, environment)
    if plain[0] != 0:
        skip(name, plain[1].decode().strip() if plain[0] == SKIP else f"the hooks do not work here at all: {plain}")
        continue
    for heap, (settings, limited) in HEAPS.items():
        if heap and name == MALLOC_TOO:
            continue
        options = {"preexec_fn": limit_address_space} if limited else {}
        ours = run([HOOKS, *arguments], LIBRARY, {**environment, **settings}, **options)
        check(name + heap, ours == plain, ours if ours == plain else f"with {ours}, without {plain}")
end()
