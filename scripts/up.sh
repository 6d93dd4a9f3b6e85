#!/usr/bin/env bash
# From a fresh checkout to a program that ran in a sandbox: builds, runs a sample,
# and shows its result with the isolation report.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"

[ "$(uname -s) $(uname -m)" = "Linux x86_64" ] ||
    die "Cofferdam runs on Linux on x86-64; this is $(uname -s) on $(uname -m)"
need_cargo

note "building"
scripts/build.sh

# show COMMAND...: prints a command as one would type it, then runs it.
show() {
    printf '\n$ cofferdam' >&2
    local word
    for word in "$@"; do
        [[ $word == *[!a-z-]* ]] && word="'$word'"
        printf ' %s' "$word" >&2
    done
    printf '\n' >&2
    "$RELEASE_BINARY" "$@" && return 0
    local code=$?
    printf '\nThat ended with code %s. What this machine lacks:\n' "$code" >&2
    "$RELEASE_BINARY" doctor >&2 || true
    exit "$code"
}

show run -c 'print("hello from the sandbox")'
show run --json -c 'import os; print("uid", os.getuid(), "in", os.getcwd())'

note "the binary is $RELEASE_BINARY"
