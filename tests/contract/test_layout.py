# SPDX-License-Identifier: Apache-2.0
"""What lies where: the top level, a README in each folder, a licence line in each file, no path of one machine."""
import os
import re
import unittest

import source_tree

TOP = {"runtime", "preload", "allocator", "include", "tests", "examples",
       "CMakeLists.txt", "CMakePresets.json", "README.md", "LICENSE"}

# Licences other than the project's, by folder; none of these files is installed.
LICENCES = {
    "tests/rig/plugin/": {"GPL-2.0-or-later"},
    "tests/rig/module/": {"GPL-2.0", "GPL-2.0-only", "GPL-2.0 OR Apache-2.0"},
    "tests/rig/shared.h": {"GPL-2.0 OR Apache-2.0"},
    "tests/rig/model.h": {"GPL-2.0 OR Apache-2.0"},
}
SOURCE_SUFFIXES = source_tree.CXX | {".py", ".sh", ".cmake", ".f90", ".S"}
SOURCE_NAMES = {"CMakeLists.txt", "Makefile", "Kbuild"}
SPDX = re.compile(r"SPDX-License-Identifier: ([^\n*]+?)\s*(?:\*/)?\s*$", re.MULTILINE)

MACHINE_PATH = re.compile(r"(?<![\w.])/root/\w|/home/(?!user\b)\w")


def is_source(path):
    if path.suffix in SOURCE_SUFFIXES or path.name in SOURCE_NAMES:
        return True
    return "corpus" not in path.parts and path.suffix == "" and source_tree.text(path).startswith("#!")


def licences_of(path):
    for place, licences in LICENCES.items():
        if path.as_posix().startswith(place):
            return licences
    return {"Apache-2.0"}


def licence_line(text):
    """The licence that the first three lines name, or None."""
    match = SPDX.search("\n".join(text.splitlines()[:3]))
    return match.group(1) if match else None


class Layout(unittest.TestCase):
    def test_the_top_level_is_exactly_what_the_readme_says(self):
        found = {name for name in os.listdir(source_tree.ROOT)
                 if not name.startswith(".") and name not in source_tree.IGNORED_TOP}
        self.assertEqual(found, TOP)

    def test_every_folder_has_a_readme(self):
        folders = {path.parent for path in source_tree.files() if 1 <= len(path.parent.parts) <= 2}
        missing = sorted(folder.as_posix() for folder in folders
                         if not folder.name.startswith(".") and not (source_tree.ROOT / folder / "README.md").exists())
        self.assertEqual(missing, [])

    def test_every_source_file_names_its_licence(self):
        checked, wrong = 0, []
        for path in source_tree.files():
            if not is_source(path):
                continue
            checked += 1
            licence = licence_line(source_tree.text(path))
            if licence not in licences_of(path):
                wrong.append(f"{path.as_posix()}: {licence}")
        self.assertGreater(checked, 50)
        self.assertEqual(wrong, [])

    def test_no_file_names_a_path_of_one_machine(self):
        found = []
        for path in source_tree.files():
            match = MACHINE_PATH.search(source_tree.text(path))
            if match and path.name != os.path.basename(__file__):
                found.append(f"{path.as_posix()}: {match.group(0)}")
        self.assertEqual(found, [])


class TheCheckItself(unittest.TestCase):
    def test_a_missing_or_late_licence_line_is_seen(self):
        self.assertEqual(licence_line("// SPDX-License-Identifier: Apache-2.0\n"), "Apache-2.0")
        self.assertEqual(licence_line("/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */\n"), "GPL-2.0 OR Apache-2.0")
        self.assertIsNone(licence_line("int a;\nint b;\nint c;\n// SPDX-License-Identifier: Apache-2.0\n"))

    def test_a_machine_path_is_seen_and_a_web_address_is_not(self):
        self.assertTrue(MACHINE_PATH.search("cd /root/x"))
        self.assertTrue(MACHINE_PATH.search("/home/anna/x"))
        self.assertFalse(MACHINE_PATH.search("https://host/root/x /home/user/x ./root/x"))


if __name__ == "__main__":
    unittest.main()
