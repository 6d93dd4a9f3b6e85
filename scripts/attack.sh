#!/usr/bin/env bash
# Builds the attack suite's probe, a static C program that tries things from
# inside a sandbox, and runs the suite. Arguments go to the suite.
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

exec "${CARGO_TARGET_DIR:-target}/$folder/cofferdam-attacks" "${options[@]}" "$@"
