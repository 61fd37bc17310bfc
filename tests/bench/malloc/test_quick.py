#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare --quick gives figures for every row, and does not take a library that cannot be preloaded for an allocator.
    test_quick.py BUILD_FOLDER LIBRARY
Exit status: 0 right, 1 wrong (said), 77 plain jemalloc is missing."""
import json
import pathlib
import subprocess
import sys
import tempfile

COMPARE = pathlib.Path(__file__).resolve().with_name("compare")
SKIPPED = 77
NEEDS_SOMETHING = 2


def compare(folder, build, library, *options):
    """(what it found, what it said): --quick under the variants that a fresh machine has."""
    result = pathlib.Path(folder) / "result.json"
    done = subprocess.run([COMPARE, "--quick", "--build", build, "--library", library, "--json", result, *options],
                          capture_output=True, text=True, check=False)
    print(done.stdout + done.stderr, flush=True)
    if done.returncode == NEEDS_SOMETHING and "install libjemalloc2" in done.stderr:
        sys.exit(SKIPPED)
    assert done.returncode == 0, f"compare: exit status {done.returncode}"
    return json.loads(result.read_text("ascii")), done.stderr


def check_every_row_has_figures(found):
    absent = {(row, variant) for row, variant, _ in found["absent"]}
    assert len(found["rows"]) > 40, "rows are missing"
    for row in found["rows"]:
        for variant, rounds in row["rounds"].items():
            if (row["row"], variant) in absent:
                continue
            for figures in rounds:
                assert min(figures["cpu_s"], figures["wall_s"], figures["peak_kib"]) > 0, (row["row"], variant, figures)
        assert row["verdict"] == "-" or row["speed"]["libpghot"] > 0, row["row"]


def main():
    build, library = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        found, _ = compare(folder, build, library, "--variants", "libpghot,glibc")
        check_every_row_has_figures(found)
        found, _ = compare(folder, build, library, "--only", "churn|perl",
                           "--variants", "libpghot,jemalloc again,size rules,mode off")
        assert {row["row"] for row in found["rows"] if "size rules" in row["rounds"]} == {
            "churn", "churn/threads:2", "large_churn", "large_churn/threads:2"}
        assert [row["row"] for row in found["rows"] if "mode off" in row["rounds"]] == ["perl"]

        no_library = pathlib.Path(folder) / "libpghot.so"
        no_library.write_text("not a library\n", "ascii")
        found, said = compare(folder, build, no_library, "--only", "^churn$", "--variants", "libpghot")
        assert "cannot be preloaded" in said and list(found["rows"][0]["rounds"]) == ["jemalloc"], said


main()
