# SPDX-License-Identifier: Apache-2.0
"""Every allocation function that the installed C and C++ libraries offer is ours too, or is known not to hand out or
take back memory of the heap. A name in neither list is new in that library, and a hole in ours."""
import os
import pathlib
import re
import subprocess
import unittest

LIBRARY = pathlib.Path(os.environ["PGHOT_BUILD"]) / "libpghot.so"

OF_THE_C_LIBRARY = re.compile(r"alloc|memalign|free|mall|^m(check|probe|trace)|morecore")
OF_THE_CXX_LIBRARY = re.compile(r"^_Z(n[wa]|d[la])")

# Pattern of names: why they are not ours.
EXCEPTIONS = {
    r"__(malloc|realloc|memalign|free|malloc_initialize|after_morecore)_hook": "not called by anybody since 2.34",
    r"__(default_)?morecore|mallwatch": "compat symbols of the C library's own heap",
    r"mcheck(_check_all|_pedantic)?|mprobe|mtrace": "debug the C library's own heap; idle since 2.34",
    r"__libc_freeres": "frees what the C library keeps, by calling free",
    r"__libc_reallocarray": "GLIBC_PRIVATE: calls realloc",
    r"__libc_(alloc_buffer_|allocate_once|scratch_buffer_|dynarray_)\w+": "GLIBC_PRIVATE: calls malloc and free",
    r"__libc_alloca_cutoff|__libc_allocate_rtsig(_private)?": "no heap memory: stack, signal numbers",
    r"_IO_\w+": "buffers of streams: calls malloc and free",
    r"_?obstack_\w+": "stacks of objects: call what the program gave them",
    r"__sched_cpu(alloc|free)": "calls malloc and free",
    r"(__)?freelocale|freeaddrinfo|freeifaddrs|globfree(64)?|regfree|wordfree|if_freenameindex|xdr_free": "calls free",
    r"inet6_option_alloc": "room in a buffer of the caller",
    r"(posix_)?fallocate(64)?": "space in files",
    r"pkey_(alloc|free)": "protection keys",
    r"__(mempcpy|stpcpy|strcpy)_small": "old inline string functions, found by the letters 'mall'",
}


def exported(library):
    """Names without versions that `library` defines for others."""
    text = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in text.splitlines()}


def path_of(name):
    """The library that the linker would take."""
    path = subprocess.run(["cc", f"-print-file-name={name}"], check=True, capture_output=True, text=True).stdout.strip()
    assert os.path.isabs(path), f"{name} is not installed"
    return path


def holes(offered, pattern, ours):
    """Names of `offered` that are allocation functions by `pattern`, and neither ours nor known exceptions."""
    known = [re.compile(exception) for exception in EXCEPTIONS]
    return sorted(name for name in offered if pattern.search(name) and name not in ours
                  and not any(exception.fullmatch(name) for exception in known))


class InterposedNames(unittest.TestCase):
    def setUp(self):
        self.ours = exported(LIBRARY)

    def test_every_allocation_function_of_the_c_library_is_ours_or_a_known_exception(self):
        offered = exported(path_of("libc.so.6"))
        self.assertGreater(len([name for name in offered if OF_THE_C_LIBRARY.search(name)]), 50)
        self.assertEqual(holes(offered, OF_THE_C_LIBRARY, self.ours), [])

    def test_every_operator_new_and_delete_of_the_cxx_library_is_ours(self):
        offered = exported(path_of("libstdc++.so.6"))
        operators = {name for name in offered if OF_THE_CXX_LIBRARY.search(name)}
        self.assertGreaterEqual(len(operators), 20)
        self.assertEqual(operators - self.ours, set())

    def test_no_exception_is_one_of_ours(self):
        known = [re.compile(exception) for exception in EXCEPTIONS]
        self.assertEqual([name for name in self.ours if any(exception.fullmatch(name) for exception in known)], [])


class TheCheckItself(unittest.TestCase):
    def test_a_name_in_neither_list_is_seen(self):
        offered = {"malloc", "free_sized", "realloc_in_place", "__libc_freeres", "printf", "globfree"}
        self.assertEqual(holes(offered, OF_THE_C_LIBRARY, {"malloc"}), ["free_sized", "realloc_in_place"])

    def test_operators_are_told_from_other_names(self):
        self.assertTrue(all(OF_THE_CXX_LIBRARY.search(name) for name in ("_Znwm", "_ZnamSt11align_val_t", "_ZdaPvm")))
        self.assertFalse(any(OF_THE_CXX_LIBRARY.search(name) for name in ("_ZNSt6vectorIiE", "_ZSt9terminatev")))


if __name__ == "__main__":
    unittest.main()
