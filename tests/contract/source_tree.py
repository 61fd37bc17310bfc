# SPDX-License-Identifier: Apache-2.0
"""The project's own files, for the contract tests. Whatever .gitignore names at the top is not ours."""
import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
IGNORED_TOP = {".git", "build", ".cache", "compile_commands.json"}
IGNORED_ANYWHERE = {"__pycache__"}
CXX = {".h", ".hpp", ".cc", ".c", ".def"}


def files(*folders):
    """Files below the given folders (the whole project without any), as paths relative to the root."""
    for folder in folders or ["."]:
        for base, subfolders, names in os.walk(ROOT / folder):
            here = pathlib.Path(base)
            subfolders[:] = sorted(
                name for name in subfolders
                if name not in IGNORED_ANYWHERE and not (here == ROOT and name in IGNORED_TOP))
            for name in sorted(names):
                if not (here == ROOT and name in IGNORED_TOP) and not name.endswith(".pyc"):
                    yield (here / name).relative_to(ROOT)


def cxx_files(*folders):
    return (path for path in files(*folders) if path.suffix in CXX)


def text(path):
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")
