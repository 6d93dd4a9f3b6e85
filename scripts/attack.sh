#!/usr/bin/env bash
# Builds the attack suite's probe, a static C program that tries things from
# inside a sandbox, and runs the suite. Arguments go to the suite.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"

need_cargo
need make=make cc=gcc /usr/include/stdio.h=libc6-dev

mkdir -p target/attacks
make --no-print-directory -C tests/attacks/probe OUT="$ROOT/target/attacks/probe"

exec cargo run --release -p cofferdam-attacks -- "$@"
