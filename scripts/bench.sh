#!/usr/bin/env bash
# Measures Cofferdam beside its peers, in one run on one root filesystem. Arguments
# go to the benchmark; it fails when a target is missed. Tables: docs/results/bench.md;
# every figure: target/bench.json.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"

need_cargo
scripts/build.sh
bench/setup.sh

# Only a full run becomes the document that is kept.
outputs=(--json target/bench.json)
if [ $# = 0 ]; then
    mkdir -p docs/results
    outputs+=(--markdown docs/results/bench.md)
fi
exec cargo run --release -p cofferdam-bench -- --cofferdam "$RELEASE_BINARY" "${outputs[@]}" "$@"
