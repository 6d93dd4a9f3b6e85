#!/usr/bin/env bash
# Runs prebuilt test binaries where this machine may not be: on unified cgroup v2
# under systemd, as root and as an ordinary user with and without delegation.
#
#   scripts/test-vm.sh [FOLDER]     FOLDER is target/vm unless given
#
# FOLDER is at /mnt in the VM, and /mnt/run-MODE.sh is run there for each mode:
#   root-v2               root, in a delegated service of systemd
#   rootless-delegated    uid 1000, in a delegated scope of its own
#   rootless-undelegated  uid 1000, in a login session that delegates nothing
# One boot serves all. A mode without a script is an error, never a skip.
# Binaries must be static: the VM's C library is Debian bookworm's.
#
# MODE_SECONDS (600, or 3000 with ATTACK_FULL) is the most that one mode may take.
# ATTACK_FULL=1 adds the attacks' positive controls and the mutations, some ten
# minutes for each of the two modes that run them, and writes their tables to
# docs/results. What takes long by itself stays shortened: this is emulation.
# COFFERDAM_BLESS=1 writes the golden postures of both modes anew.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# The name that a script has = how the VM runs it.
MODES=(
    root-v2=root
    rootless-delegated=rootless
    rootless-undelegated=rootless-undelegated
)

main() {
    local folder=${1:-$ROOT/target/vm} limit=${MODE_SECONDS:-600}
    [ -z "${ATTACK_FULL:-}" ] || limit=${MODE_SECONDS:-3000}
    check_scripts "$folder"
    set_options "$folder"

    # On the share, because nothing else comes back when the machine crashes.
    local results
    results=$(mktemp "$folder/.results.XXXXXX")
    # shellcheck disable=SC2064 # the name as it is now
    trap "rm -f '$results'" EXIT

    local code=0
    SYSTEMD=1 TIMEOUT=$((limit * ${#MODES[@]} + 120)) \
        "$ROOT/scripts/vm/run.sh" --root "$folder" \
        "run-modes /mnt/$(basename "$results") $limit ${MODES[*]}" || code=$?
    keep_results "$folder"
    summarise "$results" "$code"
}

# How much of the attack suite is run; modes/attack.sh reads it.
set_options() {
    rm -f "$1/bless" "$1"/results/*
    if [ -n "${ATTACK_FULL:-}" ]; then
        printf '%s\n' --quick >"$1/attack-options"
    else
        printf '%s\n' --quick --walls >"$1/attack-options"
    fi
    if [ -n "${COFFERDAM_BLESS:-}" ]; then
        : >"$1/bless"
        chmod 1777 "$1/golden"
    fi
    chmod a+r "$1/attack-options"
}

# What was asked for goes to where it is committed.
keep_results() {
    local mode
    if [ -n "${COFFERDAM_BLESS:-}" ]; then
        cp "$1"/golden/*-v2.txt "$ROOT/tests/attacks/golden/"
    fi
    [ -n "${ATTACK_FULL:-}" ] || return 0
    for mode in root-v2 rootless-v2; do
        [ ! -f "$1/results/$mode.md" ] || cp "$1/results/$mode.md" "$ROOT/docs/results/attack-$mode.md"
    done
}

check_scripts() {
    local pair missing=()
    for pair in "${MODES[@]}"; do
        [ -f "$1/run-${pair%%=*}.sh" ] || missing+=("run-${pair%%=*}.sh")
    done
    [ ${#missing[@]} = 0 ] || die "$1 lacks ${missing[*]}; every mode must be tested"
}

# summarise RESULTS CODE: a line for each mode, then the count. A mode that left
# no result did not pass, whatever the machine's exit code.
summarise() {
    local pair mode code took passed=0 failed=0
    printf '\n'
    for pair in "${MODES[@]}"; do
        mode=${pair%%=*}
        read -r code took <<<"$(awk -v mode="$mode" '$1 == mode { print $2, $3 }' "$1")"
        case $code in
            0)
                passed=$((passed + 1))
                printf 'vm: %-22s %6s s  passed\n' "$mode" "$(seconds "$took")"
                ;;
            "")
                failed=$((failed + 1))
                printf 'vm: %-22s %6s    FAILED: the machine ended first\n' "$mode" -
                ;;
            124 | 137)
                failed=$((failed + 1))
                printf 'vm: %-22s %6s s  FAILED: out of time (MODE_SECONDS), or killed\n' \
                    "$mode" "$(seconds "$took")"
                ;;
            *)
                failed=$((failed + 1))
                printf 'vm: %-22s %6s s  FAILED: exit code %s\n' "$mode" "$(seconds "$took")" "$code"
                ;;
        esac
    done
    printf 'vm: %d passed, %d failed\n' "$passed" "$failed"
    [ "$failed" = 0 ] && [ "$2" = 0 ]
}

main "$@"
