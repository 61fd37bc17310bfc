# SPDX-License-Identifier: Apache-2.0
"""README.md says what the command says. PGHOT_BUILD names the build folder."""
import os
import pathlib
import re
import subprocess
import unittest

import source_tree

COMMAND = pathlib.Path(os.environ["PGHOT_BUILD"]) / "pghot"
BLOCK = re.compile(r"<!-- pghot tunables --markdown -->\n(.*?)<!-- end of the table -->", re.DOTALL)


def output_of(*arguments):
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=True).stdout


class Readme(unittest.TestCase):
    def test_the_table_of_settings_is_the_commands(self):
        blocks = BLOCK.findall(source_tree.text("README.md"))
        self.assertEqual(len(blocks), 1, "README.md has one block between the two markers")
        self.assertEqual(blocks[0], output_of("tunables", "--markdown"),
                         "paste the output of `build/release/pghot tunables --markdown` between the markers")

    def test_every_setting_that_the_readme_names_exists(self):
        named = set(re.findall(r"PGHOT_[A-Z0-9_]*[A-Z0-9]", source_tree.text("README.md")))
        known = set(re.findall(r"`(PGHOT_\w+)`", output_of("tunables", "--markdown")))
        self.assertEqual(named - known, set())

    def test_the_two_commands_exist_and_can_be_executed(self):
        text = source_tree.text("README.md")
        for command in ("./examples/demo", "./tests/run"):
            self.assertIn(command, text)
            self.assertTrue(os.access(source_tree.ROOT / command, os.X_OK), f"{command} cannot be executed")


if __name__ == "__main__":
    unittest.main()
