# SPDX-License-Identifier: Apache-2.0
"""Who may include whom, and who may talk to the kernel: the table of runtime/README.md, held."""
import re
import unittest

import source_tree

# Folder: what it may include of ours besides itself. The longest matching folder counts; "everything" is what it says.
MAY_INCLUDE = {
    "include/pghot": [],
    "runtime/base": [],
    "runtime/config": ["runtime/base"],
    "runtime/kernel": ["runtime/base"],
    "runtime/policy": ["runtime/base"],
    # A recording holds samples and moves, so sources know both of policy's value types, and nothing else of it.
    "runtime/sources": ["runtime/base", "runtime/kernel", "runtime/policy/sample.h", "runtime/policy/move.h"],
    "runtime/migrate": ["runtime/base", "runtime/kernel", "runtime/policy/move.h"],
    "runtime/engine": ["runtime"],
    "runtime/report": ["runtime/base"],
    "allocator": ["runtime/base", "runtime/kernel"],
    "preload": ["runtime", "allocator", "include"],
    "preload/cli": ["runtime", "allocator", "include", "preload"],
}

# Headers through which the kernel is reached.
KERNEL_HEADER = re.compile(
    r"(linux|asm)/.*|sys/(mman|syscall|ioctl|prctl|resource|utsname|auxv|epoll|timerfd|eventfd|inotify)\.h"
    r"|(syscall|sched|dirent|fcntl|numa|numaif)\.h")
# runtime/kernel is the folder for them. The others name what they stand in for libc with: the allocator is what
# jemalloc's page calls and start-up questions (affinity, limits) end in; start-up reads the auxiliary vector and the host's name.
MAY_REACH_KERNEL = {
    "runtime/kernel": ".*",
    "allocator": r"sys/(mman|syscall|resource|auxv)\.h|sched\.h",
    "preload": r"sys/(mman|auxv|utsname)\.h",
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)


def folder_of(path, table):
    """The longest folder of `table` that holds `path`, or None."""
    holds = [folder for folder in table if path.startswith(folder + "/")]
    return max(holds, key=len, default=None)


def allowed(includer, included):
    folder = folder_of(includer, MAY_INCLUDE)
    if folder is None:
        return False
    if folder_of(included, MAY_INCLUDE) == folder:
        return True
    return any(included == entry or included.startswith(entry + "/") for entry in MAY_INCLUDE[folder])


def may_reach_kernel(includer, header):
    if not KERNEL_HEADER.fullmatch(header):
        return True
    folder = folder_of(includer, MAY_REACH_KERNEL)
    if includer.startswith("preload/cli/"):
        folder = None
    return folder is not None and re.fullmatch(MAY_REACH_KERNEL[folder], header) is not None


def violations(path, text):
    """Lines that say what is wrong with the includes of one file."""
    found = []
    for ours, system in INCLUDE.findall(text):
        if ours and not allowed(path, ours):
            found.append(f"{path} includes {ours}")
        if system and not may_reach_kernel(path, system):
            found.append(f"{path} includes <{system}>")
    return found


class Includes(unittest.TestCase):
    def test_every_file_keeps_to_the_table(self):
        checked, found = 0, []
        for path in source_tree.cxx_files("include", "runtime", "allocator", "preload"):
            checked += 1
            found += violations(path.as_posix(), source_tree.text(path))
        self.assertGreater(checked, 20)
        self.assertEqual(found, [])

    def test_nothing_knows_preload(self):
        found = [path.as_posix() for path in source_tree.cxx_files("include", "runtime", "allocator")
                 if re.search(r'#\s*include\s*"preload/', source_tree.text(path))]
        self.assertEqual(found, [])

    def test_every_folder_is_in_the_table(self):
        unknown = {path.parent.as_posix() for path in source_tree.cxx_files("include", "runtime", "allocator", "preload")
                   if folder_of(path.as_posix(), MAY_INCLUDE) is None}
        self.assertEqual(unknown, set())


class TheCheckItself(unittest.TestCase):
    def test_a_lower_folder_may_not_include_a_higher_one(self):
        self.assertTrue(violations("runtime/base/a.h", '#include "runtime/policy/b.h"'))
        self.assertTrue(violations("runtime/policy/a.cc", '  #  include "runtime/kernel/b.h"'))
        self.assertTrue(violations("allocator/a.cc", '#include "runtime/engine/b.h"'))
        self.assertTrue(violations("runtime/engine/a.cc", '#include "allocator/b.h"'))
        self.assertTrue(violations("preload/a.cc", '#include "preload/cli/b.h"'))

    def test_only_the_value_types_of_policy_reach_sources(self):
        self.assertFalse(violations("runtime/sources/a.cc", '#include "runtime/policy/sample.h"'))
        self.assertTrue(violations("runtime/sources/a.cc", '#include "runtime/policy/heat_table.h"'))
        self.assertTrue(violations("runtime/migrate/a.cc", '#include "runtime/policy/sample.h"'))

    def test_an_include_that_is_not_from_the_root_is_refused(self):
        self.assertTrue(violations("runtime/policy/a.cc", '#include "b.h"'))

    def test_kernel_headers_stay_in_their_folder(self):
        self.assertFalse(violations("runtime/kernel/a.cc", "#include <linux/perf_event.h>"))
        self.assertTrue(violations("runtime/sources/a.cc", "#include <linux/perf_event.h>"))
        self.assertTrue(violations("allocator/a.cc", "#include <linux/mempolicy.h>"))
        self.assertTrue(violations("preload/cli/a.cc", "#include <sys/syscall.h>"))
        self.assertFalse(violations("runtime/policy/a.cc", "#include <algorithm>"))


if __name__ == "__main__":
    unittest.main()
