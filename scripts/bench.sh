#!/usr/bin/env bash
# Measures Cofferdam beside its peers, in one run on one root filesystem. Arguments
# go to the benchmark; it fails when a target is missed.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"

need_cargo
scripts/build.sh
bench/setup.sh

exec cargo run --release -p cofferdam-bench -- --cofferdam "$RELEASE_BINARY" "$@"
