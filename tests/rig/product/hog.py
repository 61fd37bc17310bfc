# SPDX-License-Identifier: Apache-2.0
"""Memory that keeps a node full: locked, so that it is neither swapped nor demoted."""
import ctypes
import mmap

MPOL_PREFERRED = 1    # not BIND, which kills when the node has a little less than it said
SYS_MBIND = 237
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


def free_bytes(node):
    with open(f"/sys/devices/system/node/node{node}/meminfo", encoding="ascii") as file:
        return next(int(line.split()[3]) * 1024 for line in file if "MemFree:" in line)


def fill(node, leave_bytes):
    """Takes all of the node but `leave_bytes`, until the process ends."""
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
        file.write("3")
    size = (free_bytes(node) - leave_bytes) & ~((2 << 20) - 1)
    if size <= 0:
        return
    at = libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    mask = ctypes.c_ulong(1 << node)
    bound = libc.syscall(SYS_MBIND, ctypes.c_void_p(at), ctypes.c_ulong(size), MPOL_PREFERRED, ctypes.byref(mask), ctypes.c_ulong(64), 0)
    if bound != 0 or libc.mlock(ctypes.c_void_p(at), ctypes.c_size_t(size)) != 0:
        raise OSError(ctypes.get_errno(), f"hog: node {node} cannot be filled")
