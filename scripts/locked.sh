#!/usr/bin/env bash
# The lines of some packages in a lock file, with their hashes: scripts/locked.sh requirements.lock numpy scipy
set -euo pipefail
lock=$1
shift
for package in "$@"; do
    awk -v begins="$package==" 'index($0, begins) == 1 { found = 1 } found { print } found && !/\\$/ { exit }' "$lock"
done
