#!/usr/bin/env bash
# Builds the release binary. It is static and at a fixed address because `run`
# starts it once per command: relocating a large position-independent program
# costs more than setting up the sandbox.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"

need_cargo
need cc=gcc /usr/include/stdio.h=libc6-dev

RUSTFLAGS="-C target-feature=+crt-static -C relocation-model=static" \
    cargo build --release --target "$TARGET" -p cofferdam-cli --bin cofferdam "$@"
