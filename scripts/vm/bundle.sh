#!/usr/bin/env bash
# Fills a folder with what the VM runs: the tests, built here, and a script for each
# of its modes.
#
#   scripts/vm/bundle.sh [FOLDER]     FOLDER is target/vm unless given
set -euo pipefail
# shellcheck source=../lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
cd "$ROOT"

need make=make cc=gcc /usr/include/stdio.h=libc6-dev

# The path of the one executable that a cargo command makes.
executable() {
    cargo "$@" --message-format=json 2>/dev/null |
        sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1
}

main() {
    local folder=${1:-target/vm} conformance
    mkdir -p "$folder"
    note "building what the VM runs"
    conformance=$(executable test -p cofferdam-native --test conformance --no-run)
    [ -x "$conformance" ] || die "cargo built no conformance test"
    cp "$conformance" "$folder/conformance"
    cp "$(executable build -p cofferdam-native --bin cofferdam-launcher)" "$folder/cofferdam-launcher"
    cp "$(executable build -p cofferdam-cli --bin cofferdam)" "$folder/cofferdam"
    # The suite, its launcher with controls that can be left out, and the probe.
    local attacks
    attacks=$(executable build -p cofferdam-attacks --bin cofferdam-attacks)
    cp "$attacks" "$(executable build -p cofferdam-attacks --bin attack-launcher)" "$folder/"
    make --no-print-directory -C tests/attacks/probe OUT="$(readlink -f "$folder")/probe"
    rm -rf "$folder/golden" "$folder/results"
    cp -r tests/attacks/golden "$folder/golden"
    mkdir "$folder/results"
    # The rootless modes read what is here, and write results, whatever the umask.
    chmod -R a+rX "$folder"
    chmod 1777 "$folder/results"
    cp scripts/vm/modes/*.sh "$folder/"
}

main "$@"
