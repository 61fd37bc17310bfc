#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: run_field_cases.sh LIBRARY CASES_DIR
# Runs the field cases (small programs that reproduce what users of preload libraries reported) under LIBRARY, in a
# scratch folder: settings that name a file make files there. Exit 77 without the cases.
# 020 (the library arrives late, by dlopen) is a stated limit of jemalloc's initial-exec TLS and must fail as such.
library=$1 cases=$2
[ -x "$cases/run-all" ] || { echo "no field cases in $cases"; exit 77; }
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' 0
cd "$scratch" || exit 2
# ctest's children inherit descriptors of ctest, which a case with room for four cannot afford.
exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
LIB=$library "$cases/run-all" > results
cat results
total=$(wc -l < results)
[ "$total" -gt 0 ] || { echo "no case ran"; exit 1; }
bad=$(grep -vE '	(ok|skip)	' results | grep -v '^020-dlopen-late	FAIL	.*static TLS')
[ -z "$bad" ] || { printf 'not right:\n%s\n' "$bad"; exit 1; }
echo "$total cases, $(grep -c '	skip	' results) skipped, 020 is a stated limit"
