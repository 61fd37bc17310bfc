#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Python modules do with blocks that a C library gave them: free out of libc, or out of the library itself."""
import ctypes
import ctypes.util

TEXT = b"a text that is longer than the smallest block"

for name in ("libc.so.6", ctypes.util.find_library("m"), None):
    library = ctypes.CDLL(name)
    library.strdup.restype = library.malloc.restype = library.realloc.restype = ctypes.c_void_p
    library.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    library.free.argtypes = [ctypes.c_void_p]
    for _ in range(100):
        copy = library.realloc(library.strdup(TEXT), 100000)
        assert ctypes.string_at(copy) == TEXT
        library.free(copy)
        ctypes.CDLL(None).free(ctypes.c_void_p(library.malloc(1000)))
print("right")
