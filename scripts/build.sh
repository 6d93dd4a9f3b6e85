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

export RUSTFLAGS="-C target-feature=+crt-static -C relocation-model=static"
build=(--target "$TARGET" -p cofferdam-cli --bin cofferdam)

# `run` touches a small part of the program, and each page that it touches costs a
# fault. So what `run` is made of lies together, before what only `serve` uses. The
# names come from a build of the same code; the linker passes over what it has not.
names=${CARGO_TARGET_DIR:-target}/$TARGET/release-names/cofferdam
order=$ROOT/target/run-order.txt
need nm=binutils
cargo build --profile release-names "${build[@]}" "$@"
mkdir -p target
nm "$names" | awk '$2 ~ /^[tT]$/ { print $3 }' |
    grep -E 'cofferdam_(cli|linux|native|worker|core|backend)|5tokio|4clap|12clap_builder|3std|4core|5alloc|9hashbrown|6rustix|10serde_json|5serde' |
    grep -vE 'sqlx|regorus|hyper|axum|cofferdam_(http|control|store|policy|api)' >"$order"

cargo rustc --release "${build[@]}" "$@" -- \
    -C link-arg=-Wl,--symbol-ordering-file="$order" -C link-arg=-Wl,--no-warn-symbol-ordering
