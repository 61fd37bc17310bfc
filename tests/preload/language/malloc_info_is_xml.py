#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: malloc_info_is_xml.py LIBRARY PROGRAM
What malloc_info writes is read by monitoring agents: well-formed XML with the elements that glibc's has, and figures
that hold what the program has allocated."""
import os
import subprocess
import sys
import xml.etree.ElementTree as xml

library, program = sys.argv[1:]
run = subprocess.run([program], env={**os.environ, "LD_PRELOAD": library}, text=True, capture_output=True, timeout=60,
                     check=True)
root = xml.fromstring(run.stdout)
assert (root.tag, root.get("version")) == ("malloc", "1"), run.stdout
system = [int(element.get("size")) for element in root.findall("system") if element.get("type") == "current"]
aspace = [int(element.get("size")) for element in root.findall("aspace") if element.get("type") == "total"]
live = int(run.stderr)
assert len(system) == 1 and live <= system[0] <= 20 * live, run.stdout
assert len(aspace) == 1 and aspace[0] >= system[0], run.stdout
