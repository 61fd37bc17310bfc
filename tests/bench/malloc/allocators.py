# SPDX-License-Identifier: Apache-2.0
"""What a program can be run under: each is a library to preload and settings. Libraries are found, not configured."""
import functools
import glob
import os
import re
import subprocess
from dataclasses import dataclass, field

BASE = "jemalloc"            # every ratio is against it
NOISE = "jemalloc again"     # the base against itself: what a ratio can be by chance
PRODUCT = "libpghot"
NONE = "glibc"               # nothing preloaded
SIZE_RULES = "size rules"    # the product with large blocks placed; node 0 exists everywhere
ACTIVE = "runtime active"    # the product with its runtime from the start, where there are two tiers
MODE_OFF = "mode off"        # the product as an allocator alone


@dataclass(frozen=True)
class Variant:
    name: str
    library: str = ""        # LD_PRELOAD; empty runs the program as it is
    settings: dict = field(default_factory=dict)
    missing: str = ""        # why it cannot be run

    @property
    def assignments(self):
        preload = {"LD_PRELOAD": self.library} if self.library else {}
        return [f"{name}={value}" for name, value in {**preload, **self.settings}.items()]


@functools.cache
def _loader_cache():
    for command in ("ldconfig", "/sbin/ldconfig"):
        try:
            return subprocess.run([command, "-p"], capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            continue
    return ""


def find_library(name):
    """Path of a shared library by the beginning of its file name, or an empty string."""
    cached = re.search(rf"^\s*{re.escape(name)}\S* .*x86-64.* => (\S+)$", _loader_cache(), re.MULTILINE)
    if cached:
        return cached.group(1)
    found = sorted(path for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/local/lib")
                   for path in glob.glob(f"{folder}/{name}*"))
    return found[0] if found else ""


def _distributed(variant, library, package):
    path = find_library(library)
    return Variant(variant, path, missing="" if path else f"{library} is not there: install {package}")


def all_variants(product_library):
    """In the order in which they run: the base between the product and its double, so that both are as near to it."""
    library = os.path.realpath(product_library)
    missing = "" if os.path.exists(library) else f"{product_library} is not there: build the target pghot_so"
    return [Variant(PRODUCT, library, missing=missing),
            _distributed(BASE, "libjemalloc.so.2", "libjemalloc2"),
            _distributed(NOISE, "libjemalloc.so.2", "libjemalloc2"),
            Variant(SIZE_RULES, library, {"PGHOT_PLACEMENT": "size>=64K:node:0"}, missing),
            Variant(ACTIVE, library, {"PGHOT_START_MIN": "0"}, missing),
            Variant(MODE_OFF, library, {"PGHOT_MODE": "off"}, missing),
            Variant(NONE),
            _distributed("tcmalloc", "libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"),
            _distributed("mimalloc", "libmimalloc.so.2", "libmimalloc2.0")]
