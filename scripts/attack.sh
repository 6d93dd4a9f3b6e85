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

# The command itself is killed, and its service attacked: what is shipped where that
# has been built. Built apart from the suite, which has more features.
cofferdam=$RELEASE_BINARY
if [ ! -x "$cofferdam" ]; then
    cargo build --profile "$profile" -p cofferdam-cli
    cofferdam=${CARGO_TARGET_DIR:-target}/$folder/cofferdam
fi
options=(--probe "$ROOT/target/attacks/probe" --cofferdam "$cofferdam")

exec "${CARGO_TARGET_DIR:-target}/$folder/cofferdam-attacks" "${options[@]}" "$@"
