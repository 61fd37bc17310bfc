#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The workloads' programs anywhere: they help, refuse what they cannot use in one line, and do the work they say. Nothing is
timed.
    test_programs.py FOLDER_OF_THE_PROGRAMS [UNITTEST ARGUMENTS]"""
import json
import os
import pathlib
import subprocess
import sys
import unittest

FOLDER = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(".")
# Short arguments for one node, and phases.
SHORT = {
    "tier_bench": (["--memory-node", "0", "--bytes", "8M", "--accesses", "100K"], ["uniform"]),
    "hot_set_bench": (["--memory-node", "0", "--bytes", "8M", "--window-bytes", "2M", "--accesses", "100K"],
                      ["window 1", "window 2", "window 3"]),
    "inference_bench": (["--memory-node", "0", "--expert-bytes", "16K", "--operations", "10", "--repetitions", "2"],
                        ["prefill 1", "decode 1", "prefill 2", "decode 2"]),
    "graph_bench": (["--vertices", "4K", "--edges", "32K"], ["search 1", "search 2", "search 3"]),
    "graph_ranks_bench": (["--vertices", "4K", "--edges", "32K"], ["search 1", "search 2", "search 3"]),
    "stencil_bench": (["--memory-node", "0", "--bytes", "4M", "--steps", "2"], ["step 1", "step 2"]),
    "stream_bench": (["--memory-node", "0", "--bytes", "2M", "--operations", "10K"], ["stream", "compute"]),
}
# One rank needs no launcher; Open MPI refuses root without these.
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def built():
    return [name for name in (*SHORT, "memory_hog") if (FOLDER / name).exists()]


def run(name, *arguments):
    return subprocess.run([FOLDER / name, *arguments], env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=100, check=False)


def result(name, *arguments):
    done = run(name, *SHORT[name][0], *arguments)
    if done.returncode != 0:
        raise AssertionError(f"{name}: status {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


class CommandLine(unittest.TestCase):
    def test_help_names_the_program_and_each_setting_with_its_default(self):
        for name in built():
            with self.subTest(name):
                done = run(name, "--help")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertTrue(done.stdout.startswith(f"{name}: "))
                self.assertIn("(default ", done.stdout)

    def test_what_cannot_be_used_is_one_line_and_status_2(self):
        for name in built():
            for arguments in (["--node", "x"], ["--seed", "-1"], ["--seed", "1e30"], ["surplus"], ["--no-such-thing"]):
                with self.subTest(f"{name} {arguments}"):
                    done = run(name, *arguments)
                    self.assertEqual((done.returncode, done.stdout), (2, ""))
                    self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_settings_that_do_not_fit_each_other_are_named(self):
        for name, arguments, named in (("tier_bench", ["--threads", "3", "--groups", "2"], "--threads"),
                                       ("tier_bench", ["--bytes", "1M", "--pages", "huge"], "--bytes"),
                                       ("hot_set_bench", ["--bytes", "8M", "--window-bytes", "4M"], "--bytes"),
                                       ("inference_bench", ["--experts", "2", "--experts-used", "3"], "--experts-used"),
                                       ("graph_bench", ["--vertices", "5000"], "--vertices"),
                                       ("stencil_bench", ["--bytes", "1M"], "--bytes")):
            with self.subTest(f"{name} {arguments}"):
                done = run(name, *arguments)
                self.assertEqual(done.returncode, 2)
                self.assertIn(named, done.stderr)

    def test_sizes_are_read_and_shown_as_they_are_written(self):
        self.assertEqual(result("tier_bench", "--bytes", "4096K")["bytes"], 4 << 20)
        self.assertEqual(result("tier_bench", "--accesses", "2.5K")["accesses"], 2500)
        self.assertIn("(default 128M)", run("tier_bench", "--help").stdout)


class Work(unittest.TestCase):
    def test_every_program_does_its_phases_and_leaves_the_pages_where_they_are(self):
        for name in set(built()) & set(SHORT):
            with self.subTest(name):
                found = result(name)
                self.assertEqual([phase["name"] for phase in found["phases"]], SHORT[name][1])
                self.assertGreater(found["pages_per_node"]["0"], 0)
                self.assertAlmostEqual(found["wall_us"], sum(phase["wall_us"] for phase in found["phases"]), delta=10)

    def test_a_seed_gives_the_same_result_again_and_another_one_another(self):
        for name in ("tier_bench", "hot_set_bench", "inference_bench", "graph_bench"):
            with self.subTest(name):
                first, again, other = (result(name, "--seed", seed)["checksum"] for seed in ("1", "1", "2"))
                self.assertEqual(first, again)
                self.assertNotEqual(first, other)

    def test_ranks_find_what_threads_find(self):
        if "graph_ranks_bench" not in built():
            self.skipTest("built without MPI")
        self.assertEqual(result("graph_ranks_bench")["checksum"], result("graph_bench")["checksum"])

    def test_a_search_reaches_most_vertices_that_have_edges(self):
        found = result("graph_bench")["checksum"]
        self.assertGreater(found, 3 * 0.9 * 4096)
        self.assertLessEqual(found, 3 * 4096)

    def test_a_fixed_time_does_what_it_can(self):
        self.assertGreater(result("tier_bench", "--seconds", "0.05")["accesses"], 0)

    def test_shared_memory_lies_beside_the_private_one(self):
        found = result("tier_bench", "--shared-bytes", "2M")
        self.assertEqual([(each["name"], each["pages"]) for each in found["sets"]], [("hot", 256), ("shared", 256)])
        self.assertEqual(found["pages_per_node"]["0"], (8 + 2) * 256)

    def test_a_result_goes_where_it_is_wanted(self):
        done = run("stream_bench", *SHORT["stream_bench"][0], "--output", "/no/such/folder/x")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/no/such/folder/x", done.stderr)


if __name__ == "__main__":
    unittest.main()
