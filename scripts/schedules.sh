#!/usr/bin/env bash
# Tries many orders of what runs at once, where an order could matter: tests that are
# built for it alone, with locks that the tests schedule (shuttle).
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"

need_cargo
export RUSTFLAGS="--cfg shuttle" CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/shuttle
cargo test -p cofferdam-worker --features testing --test schedules
cargo test -p cofferdam-turns --test schedules
