# SPDX-License-Identifier: Apache-2.0
"""The pghot command from outside: exit codes, what reaches the program, JSON that parses. PGHOT_BUILD names the build
folder. The library that is preloaded here is an empty one, so that only the command is judged."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

COMMAND = pathlib.Path(os.environ["PGHOT_BUILD"]) / "pghot"
CLEAN = {name: value for name, value in os.environ.items()
         if not name.startswith("PGHOT_") and name != "LD_PRELOAD"}


def pghot(*arguments, command=COMMAND, env=None):
    return subprocess.run([command, *arguments], capture_output=True, text=True, env={**CLEAN, **(env or {})},
                          timeout=60, check=False)


class Run(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="pghot-command-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        source = pathlib.Path(cls.folder) / "empty.c"
        source.write_text("int pghot_command_test_library;\n")
        cls.library = os.path.join(cls.folder, "libpghot.so")
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", cls.library, source], check=True)

    def test_the_programs_exit_status_is_ours(self):
        self.assertEqual(pghot("run", "--library", self.library, "--", "sh", "-c", "exit 7").returncode, 7)

    def test_the_library_is_loaded_and_comes_first(self):
        other = os.path.join(self.folder, "other.so")
        shutil.copy(self.library, other)
        run = pghot("run", "--library", self.library, "--", "sh", "-c", 'echo "$LD_PRELOAD"; cat /proc/self/maps',
                    env={"LD_PRELOAD": other})
        self.assertEqual(run.stdout.splitlines()[0], f"{self.library}:{other}")
        self.assertIn(self.library, run.stdout.split("\n", 1)[1])
        self.assertEqual(run.stderr, "")

    def test_settings_reach_the_program(self):
        run = pghot("run", "--library", self.library, "--mode", "observe", "freq_threshold=3", "--", "sh", "-c",
                    'echo "$PGHOT_MODE $PGHOT_FREQ_THRESHOLD"')
        self.assertEqual(run.stdout, "observe 3\n")

    def test_a_wrong_setting_stops_before_the_program(self):
        run = pghot("run", "--library", self.library, "--mode", "loud", "--", "echo", "started")
        self.assertEqual((run.returncode, run.stdout), (2, ""))
        self.assertIn("off|observe|on", run.stderr)

    def test_what_cannot_be_run_has_the_codes_of_env(self):
        self.assertEqual(pghot("run", "--library", self.library, "--", "./no-such-program").returncode, 127)
        self.assertEqual(pghot("run", "--library", self.library, "--", self.folder).returncode, 126)
        self.assertEqual(pghot("run", "--library", "/no/libpghot.so", "--", "true").returncode, 125)

    def test_the_library_beside_the_command_is_found(self):
        copy = shutil.copy(COMMAND, self.folder)
        run = pghot("run", "--", "sh", "-c", 'echo "$LD_PRELOAD"', command=copy)
        self.assertEqual(run.stdout, self.library + "\n")

    def test_a_path_that_ld_preload_cannot_hold_is_refused_with_the_reason(self):
        spaced = os.path.join(self.folder, "my lib")
        os.makedirs(spaced, exist_ok=True)
        shutil.copy(self.library, spaced)
        run = pghot("run", "--library", os.path.join(spaced, "libpghot.so"), "--", "echo", "started")
        self.assertEqual((run.returncode, run.stdout), (125, ""))
        self.assertIn("LD_PRELOAD", run.stderr)


class Output(unittest.TestCase):
    def test_json_parses(self):
        tunables = json.loads(pghot("tunables", "--json", env={"PGHOT_RINGS": "7"}).stdout)
        self.assertEqual((tunables["PGHOT_RINGS"]["value"], tunables["PGHOT_RINGS"]["set"]), ("7", True))
        doctor = json.loads(pghot("doctor", "--json").stdout)
        self.assertIn(doctor["would_work"], (True, False))
        self.assertGreaterEqual(len(doctor["nodes"]), 1)

    def test_doctor_exits_with_what_it_found(self):
        would_work = json.loads(pghot("doctor", "--json").stdout)["would_work"]
        self.assertEqual(pghot("doctor").returncode, 0 if would_work else 1)
        self.assertEqual(pghot("doctor", env={"PGHOT_MODE": "off"}).returncode, 1)

    def test_doctor_warns_of_a_wrong_setting_and_uses_the_default(self):
        run = pghot("doctor", env={"PGHOT_MODE": "loud"})
        self.assertEqual(run.stderr, "pghot: PGHOT_MODE=loud cannot be used: allowed off|observe|on, using on\n")

    def test_wrong_arguments_are_code_2_and_say_so_on_stderr(self):
        for arguments in ([], ["fly"], ["doctor", "--xml"], ["tunables", "--json", "--json"], ["run"], ["stat", "--all"],
                          ["stat", "--json", "--json"]):
            run = pghot(*arguments)
            self.assertEqual((run.returncode, run.stdout), (2, ""), arguments)
            self.assertTrue(run.stderr.startswith("pghot: "), run.stderr)

    def test_stat_lists_nothing_where_nothing_runs(self):
        run = pghot("stat", "--json")
        self.assertEqual(run.returncode, 0 if json.loads(run.stdout)["processes"] else 1)
        self.assertEqual(pghot("stat").returncode, run.returncode)

    def test_stat_clean_removes_what_a_killed_job_left(self):
        left = pathlib.Path(f"/dev/shm/pghot.{os.geteuid()}.command-test-{os.getpid()}")
        if not os.access(left.parent, os.W_OK):
            self.skipTest("no /dev/shm to write to")
        left.touch(0o600)
        self.addCleanup(left.unlink, missing_ok=True)
        run = pghot("stat", "--clean", "--json")
        self.assertIn({"file": str(left), "fate": "removed", "reason": ""}, json.loads(run.stdout)["jobs"])
        self.assertFalse(left.exists())
        left.touch(0o644)
        run = pghot("stat", "--clean")
        self.assertEqual(run.returncode, 1)
        self.assertIn(f"{left}: not removed: the file in /dev/shm is open to others", run.stdout)
        self.assertTrue(left.exists())

    def test_help_and_version_are_on_stdout(self):
        self.assertIn("exit status", pghot("--help").stdout)
        self.assertRegex(pghot("--version").stdout, r"^pghot \d+\.\d+\.\d+\n$")

    def test_a_full_disk_is_code_3(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            self.assertEqual(subprocess.run([COMMAND, "tunables"], stdout=full, stderr=subprocess.DEVNULL,
                                            check=False).returncode, 3)


if __name__ == "__main__":
    unittest.main()
