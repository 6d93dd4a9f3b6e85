#!/usr/bin/env bash
# Builds the attack suite's probe, a static C program that tries things from
# inside a sandbox, and runs the suite. Arguments go to the suite; with none, it
# is run whole, and then on every backend. `--backends` (first) is the latter alone:
# it writes docs/results/attack-backends.md, or the file in ATTACK_BACKENDS_OUT.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"

need_cargo
need make=make cc=gcc /usr/include/stdio.h=libc6-dev python3=python3 chattr=e2fsprogs \
    pg_createcluster=postgresql

mkdir -p target/attacks
make --no-print-directory -C tests/attacks/probe OUT="$ROOT/target/attacks/probe"

# The launcher is a program of its own, which `cargo run` alone would not build.
# ATTACK_PROFILE=dev saves the time of an optimised build.
profile=${ATTACK_PROFILE:-release}
cargo build --profile "$profile" -p cofferdam-attacks --bins
folder=$profile
[ "$profile" != dev ] || folder=debug

# The command itself is killed, and its service attacked. Built apart from the suite,
# which has more features, and always: what lies there may be of yesterday.
if [ "$profile" = dev ]; then
    cargo build -p cofferdam-cli
    cofferdam=${CARGO_TARGET_DIR:-target}/debug/cofferdam
else
    scripts/build.sh
    cofferdam=$RELEASE_BINARY
fi
options=(--probe "$ROOT/target/attacks/probe" --cofferdam "$cofferdam")

suite=${CARGO_TARGET_DIR:-target}/$folder/cofferdam-attacks

# Every backend by itself, and one table of them all, whatever came of each.
backends() {
    need dockerd=docker.io runc=runc podman=podman curl=curl setsid=util-linux
    is_present runsc || die "runsc is missing; scripts/setup.sh installs it"
    local failed=0 name reports=()
    for name in native oci/runc oci/runsc docker podman; do
        local report=target/attacks/${name/\//-}.json words=(--backend "${name%/*}")
        [ "$name" = "${name#*/}" ] || words+=(--runtime "${name#*/}")
        note "attacks on $name"
        rm -f "$report"
        "$suite" "${options[@]}" "${words[@]}" --json "$report" "$@" || failed=1
        reports+=("$report")
    done
    "$suite" --table "${ATTACK_BACKENDS_OUT:-docs/results/attack-backends.md}" "${reports[@]}"
    return $failed
}

case ${1:-} in
    --backends)
        shift
        backends "$@"
        ;;
    '')
        failed=0
        "$suite" "${options[@]}" || failed=1
        backends --quick || failed=1
        exit $failed
        ;;
    *) exec "$suite" "${options[@]}" "$@" ;;
esac
