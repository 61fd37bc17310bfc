# SPDX-License-Identifier: Apache-2.0
"""What libpghot.so needs of others and shows to them, read from the built file."""
import os
import pathlib
import re
import subprocess
import unittest

import source_tree

LIBRARY = pathlib.Path(os.environ["PGHOT_BUILD"]) / "libpghot.so"
ENTRY_POINTS = "preload/entry_points.def"

NEEDED = {"libc.so.6", "ld-linux-x86-64.so.2"}
# Looked up in the program, where a C++ library may be; they are only called when an operator new has failed.
WEAK_OF_THE_PROGRAM = {"_ZSt15get_new_handlerv", "_ZSt17__throw_bad_allocv"}
# Put in by the compiler's start files for every shared library.
WEAK_OF_THE_TOOLCHAIN = {"_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable", "__gmon_start__"}
# What code with exceptions or run-time type information refers to.
EXCEPTION_SYMBOL = re.compile(r"^(_Unwind_|__cxa_(?!finalize$|atexit$|thread_atexit)|__gxx_|_ZTI|_ZTS|_ZTV|_ZNSt|_ZSt)")


def tool(*arguments):
    return subprocess.run(arguments, check=True, capture_output=True, text=True).stdout


def needed(text):
    return set(re.findall(r"\(NEEDED\)\s+Shared library: \[([^\]]+)\]", text))


def symbols(text):
    """(name without version, type letter) of each line of nm."""
    return [(name.split("@")[0], kind) for kind, name in re.findall(r" ([A-Za-z]) (\S+)$", text, re.MULTILINE)]


def listed_entry_points(text):
    return re.findall(r"^PGHOT_ENTRY\(([^,\s]+),", text, re.MULTILINE)


def exception_symbols(undefined):
    return sorted(name for name, _ in undefined
                  if EXCEPTION_SYMBOL.match(name) and name not in WEAK_OF_THE_PROGRAM)


class Library(unittest.TestCase):
    def test_it_needs_the_c_library_and_the_loader_only(self):
        found = needed(tool("readelf", "-dW", LIBRARY))
        self.assertIn("libc.so.6", found)
        self.assertEqual(found - NEEDED, set())

    def test_it_shows_exactly_the_listed_entry_points(self):
        shown = sorted(name for name, _ in symbols(tool("nm", "-D", "--defined-only", LIBRARY)))
        listed = listed_entry_points(source_tree.text(ENTRY_POINTS))
        self.assertGreater(len(listed), 40)
        self.assertEqual(len(listed), len(set(listed)))
        self.assertEqual(shown, sorted(listed))

    def test_it_refers_to_no_exception_symbol(self):
        self.assertEqual(exception_symbols(symbols(tool("nm", "-D", "--undefined-only", LIBRARY))), [])

    def test_what_it_may_do_without_is_known(self):
        weak = {name for name, kind in symbols(tool("nm", "-D", "--undefined-only", LIBRARY)) if kind in "wv"}
        self.assertTrue(WEAK_OF_THE_PROGRAM <= weak)
        weak_of_libc = {"__cxa_finalize"}
        self.assertEqual(weak - WEAK_OF_THE_PROGRAM - WEAK_OF_THE_TOOLCHAIN - weak_of_libc, set())

    def test_it_is_bound_at_load_initialised_first_never_unloaded_and_named(self):
        dynamic = tool("readelf", "-dW", LIBRARY)
        self.assertRegex(dynamic, r"Flags: NOW NODELETE INITFIRST")
        self.assertRegex(dynamic, r"Library soname: \[libpghot\.so\.0\]")
        self.assertIn("GNU_RELRO", tool("readelf", "-lW", LIBRARY))


class TheCheckItself(unittest.TestCase):
    def test_another_library_is_seen(self):
        text = " 0x1 (NEEDED)   Shared library: [libstdc++.so.6]\n 0x1 (NEEDED)   Shared library: [libc.so.6]\n"
        self.assertEqual(needed(text), {"libstdc++.so.6", "libc.so.6"})

    def test_an_exception_symbol_is_seen_and_the_weak_two_are_not(self):
        undefined = symbols("                 U _Unwind_Resume@GCC_3.0\n"
                            "                 U __gxx_personality_v0@CXXABI_1.3\n"
                            "                 U _ZSt20__throw_length_errorPKc@GLIBCXX_3.4\n"
                            "                 w _ZSt17__throw_bad_allocv\n"
                            "                 w __cxa_finalize@GLIBC_2.2.5\n"
                            "                 U memcpy@GLIBC_2.14\n")
        self.assertEqual(exception_symbols(undefined),
                         ["_Unwind_Resume", "_ZSt20__throw_length_errorPKc", "__gxx_personality_v0"])

    def test_rows_are_read_and_comments_are_not(self):
        self.assertEqual(listed_entry_points("// PGHOT_ENTRY(symbol, owner)\nPGHOT_ENTRY(malloc, jemalloc)\n"), ["malloc"])


if __name__ == "__main__":
    unittest.main()
