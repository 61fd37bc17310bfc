#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: birth_places_of_three_nodes.sh BUILD
# Runs test_placement on a machine with DRAM nodes 0 and 1 and a lower tier. A skipped test counts as failed here.
# PGHOT_MODE=off: the blocks are in use, and would come home.
# On the emulated machine only: it changes a sysctl.
[ -e /proc/rig_counters ] || { echo "not on the emulated machine: run tests/rig/test_birth_places"; exit 2; }
build=$1
failed=0
check() { # RULES EXPECTED
    echo "-- PGHOT_PLACEMENT='$1' must give $2"
    LD_PRELOAD=$build/libpghot.so PGHOT_MODE=off PGHOT_PLACEMENT=$1 EXPECTED_BIRTH_PLACES=$2 "$build/tests/preload/test_placement" \
        --gtest_brief=1 2>&1 || failed=1
}
check '' local,local > /tmp/birth_places
check slow slow,slow >> /tmp/birth_places
check 'size>=512K:slow' local,slow >> /tmp/birth_places
check 'size>=512K:node:1; slow' slow,node:1 >> /tmp/birth_places
check 'size>=512K:local; node:1' node:1,local >> /tmp/birth_places
echo 2 > /proc/sys/vm/overcommit_memory    # jemalloc commits and decommits then
check slow slow,slow >> /tmp/birth_places
cat /tmp/birth_places
grep -q SKIPPED /tmp/birth_places && failed=1
exit $failed
