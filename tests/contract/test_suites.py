# SPDX-License-Identifier: Apache-2.0
"""./tests/run counts right: what ctest writes about passed, failed, skipped and broken tests, and scripts that skip."""
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

import source_tree

sys.path.insert(0, str(source_tree.ROOT / "tests"))
import suites    # noqa: E402  (the folder is only known now)

CASES = """<testsuite>
<testcase name="good" status="run"><system-out>fine</system-out></testcase>
<testcase name="bad" status="fail"><failure message="Failed"/><system-out>x</system-out></testcase>
<testcase name="gtest" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
<system-out>[ RUN ] a.b
/x/y.cc:3: Skipped
no second node

[  SKIPPED ] a.b (0 ms)</system-out></testcase>
<testcase name="script" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/><system-out>a
mpirun is missing
</system-out></testcase>
<testcase name="gone" status="notrun"><skipped message="Unable to find executable"/><system-out/></testcase>
<testcase name="off" status="disabled"><system-out/></testcase>
</testsuite>"""


class Counting(unittest.TestCase):
    def setUp(self):
        self.outcomes = {case.get("name"): suites.outcome_of(case, "") for case in xml.fromstring(CASES)}

    def test_states(self):
        states = {name: outcome.state for name, outcome in self.outcomes.items()}
        self.assertEqual(states, {"good": "passed", "bad": "failed", "gtest": "skipped", "script": "skipped",
                                  "gone": "failed", "off": "skipped"})

    def test_a_skip_says_what_is_missing(self):
        self.assertEqual(self.outcomes["gtest"].reason, "no second node")
        self.assertEqual(self.outcomes["script"].reason, "mpirun is missing")

    def test_the_last_line_is_the_count_and_a_failure_decides_the_status(self):
        run = suites.Suites("")
        run.outcomes = list(self.outcomes.values())
        with contextlib.redirect_stdout(io.StringIO()) as output:
            status = run.summary()
        self.assertEqual(output.getvalue().splitlines()[-1], "1 passed, 2 failed, 3 skipped")
        self.assertIn("skipped: gtest: no second node\n", output.getvalue())
        self.assertEqual(status, 1)

    def test_a_run_without_any_test_is_no_success(self):
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(suites.Suites("nothing").summary(), 1)

    def test_scripts_pass_fail_and_skip(self):
        for code, state in ((0, "passed"), (1, "failed"), (77, "skipped")):
            with tempfile.TemporaryDirectory() as folder:
                script = pathlib.Path(folder) / "test_x"
                script.write_text(f"#!/bin/sh\necho why\nexit {code}\n")
                script.chmod(0o755)
                with contextlib.redirect_stdout(io.StringIO()):
                    outcome = suites.run_script(script, "x")
            self.assertEqual(outcome.state, state)
            if state == "skipped":
                self.assertEqual(outcome.reason, "why")


class Installing(unittest.TestCase):
    def test_no_install_names_what_is_missing_and_refuses(self):
        with tempfile.TemporaryDirectory() as folder:
            # A machine on which no package is installed.
            query = pathlib.Path(folder) / "dpkg-query"
            query.write_text("#!/bin/sh\nexit 1\n")
            query.chmod(0o755)
            run = subprocess.run([source_tree.ROOT / "tests" / "run", "--no-install"], capture_output=True, text=True,
                                 env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}, check=False)
        self.assertEqual(run.returncode, 2)
        self.assertIn("ninja-build", run.stdout)
        self.assertIn("--no-install", run.stderr)


if __name__ == "__main__":
    unittest.main()
