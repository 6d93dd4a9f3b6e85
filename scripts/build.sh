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
# fault, in every process of a sandbox. So the functions that it executes lie together
# (scripts/run-functions.py lists them), then what it is made of, then what only `serve`
# uses. The names come from a build of the same code; the linker passes over what it has
# not.
names=${CARGO_TARGET_DIR:-target}/$TARGET/release-names/cofferdam
order=$ROOT/target/run-order.txt
need nm=binutils
cargo build --profile release-names "${build[@]}" "$@"
mkdir -p target
functions() {
    nm -S "$names" | awk 'NF == 4 && $3 ~ /^[tTwWi]$/ { print $4, $2 }'
}
{
    # A name ends in a number of its build, which the list leaves out. A generic function
    # has the same name many times, and its size tells which is meant; the others of that
    # name come behind, in case that one has changed.
    awk '
        NR == FNR { place[$1 " " $2] = NR; if (!($1 in first)) first[$1] = NR; next }
        {
            name = $1
            sub(/\.llvm\.[0-9]+$/, "", name)
            sub(/17h[0-9a-f]+E$/, "E", name)
            if (name " " $2 in place) print 0, place[name " " $2], $1
            else if (name in first) print 1, first[name], $1
        }
    ' scripts/run-functions.txt <(functions) | sort -k 1,1n -k 2,2n -k 3 | cut -d " " -f 3
    functions | cut -d " " -f 1 |
        grep -E 'cofferdam_(cli|linux|native|worker|core|backend)|5tokio|4clap|12clap_builder|3std|4core|5alloc|9hashbrown|6rustix|10serde_json|5serde' |
        grep -vE 'sqlx|regorus|hyper|axum|cofferdam_(http|control|store|policy|api)'
} | awk '!seen[$0]++' >"$order"

cargo rustc --release "${build[@]}" "$@" -- \
    -C link-arg=-Wl,--symbol-ordering-file="$order" -C link-arg=-Wl,--no-warn-symbol-ordering
