#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: set_user_id.py LIBRARY WHICH_MEMORY
A program with more rights than its caller: the loader takes the library only from a trusted folder, and then the caller's
settings mean nothing."""
import os
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from with_and_without import check, end, run, skip    # noqa: E402

LIBRARY, WHICH_MEMORY = sys.argv[1:]
CALLER, OWNER = 54399, 54400
AS_CALLER = ["setpriv", f"--reuid={CALLER}", f"--regid={CALLER}", "--clear-groups"]
# A library of the C library's package that programs do not need: the trusted place that ours is put over.
STAND_INS = ("/lib/x86_64-linux-gnu/libmemusage.so", "/lib64/libmemusage.so", "/usr/lib/libmemusage.so")
PUT_OVER = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'


def program_of_owner(folder, name, mode):
    program = pathlib.Path(shutil.copy(WHICH_MEMORY, folder / name))
    os.chown(program, OWNER, OWNER)
    program.chmod(mode)
    return str(program)


def run_as_caller(program, preload, settings, before=()):
    return run([*before, *AS_CALLER, "env", f"LD_PRELOAD={preload}", program], None, settings)


def from_an_ordinary_folder(folder, secure, library):
    done = run_as_caller(secure, library, {"PGHOT_MODE": "nonsense"})
    if done[1] == b"secure 0, libpghot\n":
        skip("set-user-ID programs", "this file system does not honour the bit")
        end()
    check("the loader leaves the library out", done == (0, b"secure 1, libc\n", b""), done)


def from_a_trusted_folder(folder, secure, ordinary, library):
    stand_in = next((place for place in STAND_INS if os.path.exists(place)), None)
    if stand_in is None:
        return skip("a library in a trusted folder", f"none of {STAND_INS} is here")
    library.chmod(0o4755)    # the loader wants the bit on the library as well
    in_place = ["unshare", "--mount", "sh", "-c", PUT_OVER, "sh", str(library), stand_in]
    if run([*in_place, "true"], None)[0] != 0:
        return skip("a library in a trusted folder", "nothing may be mounted here")
    name = os.path.basename(stand_in)
    report = folder / "report"
    settings = {"PGHOT_MODE": "nonsense", "PGHOT_PLACEMENT": "nonsense", "PGHOT_REPORT": str(report)}
    done = run_as_caller(secure, name, settings, in_place)
    check("settings of the caller mean nothing", done == (0, b"secure 1, libpghot\n", b"") and not report.exists(), done)
    done = run_as_caller(ordinary, name, settings, in_place)
    check("they do in a program without more rights", done[:2] == (0, b"secure 0, libpghot\n")
          and done[2].count(b"pghot: ") == 2 and report.exists(), done)


if os.getuid() != 0:
    skip("set-user-ID programs", "only root can make one")
    end()
if not shutil.which("setpriv") or not shutil.which("unshare"):
    skip("set-user-ID programs", "setpriv and unshare of util-linux are missing")
    end()
with tempfile.TemporaryDirectory() as scratch:
    here = pathlib.Path(scratch)
    here.chmod(0o777)
    copy = pathlib.Path(shutil.copy(LIBRARY, here))
    copy.chmod(0o755)
    with_rights = program_of_owner(here, "secure", 0o4755)
    from_an_ordinary_folder(here, with_rights, copy)
    from_a_trusted_folder(here, with_rights, program_of_owner(here, "ordinary", 0o755), copy)
end()
