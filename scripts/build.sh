#!/usr/bin/env bash
# Builds the release binary. It is static and at a fixed address because `run`
# starts it once per command: relocating a large position-independent program
# costs more than setting up the sandbox. scripts/release-cc.sh says in which order its
# functions lie.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"

need_cargo
need cc=gcc /usr/include/stdio.h=libc6-dev nm=binutils

export RUSTFLAGS="-C target-feature=+crt-static -C relocation-model=static"
list=scripts/run-functions.txt
sum=$(cat $list scripts/release-cc.sh | cksum | cut -d " " -f 1)
cargo rustc --release --target "$TARGET" -p cofferdam-cli --bin cofferdam "$@" -- \
    -C linker="$ROOT/scripts/release-cc.sh" -C link-arg=--functions="$ROOT/$list:$sum"
