#!/usr/bin/env bash
# Fills a folder with what the VM runs: the tests, built here, and a script for each
# of its modes.
#
#   scripts/vm/bundle.sh [FOLDER]     FOLDER is target/vm unless given
set -euo pipefail
# shellcheck source=../lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
cd "$ROOT"

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
    cp scripts/vm/modes/*.sh "$folder/"
}

main "$@"
