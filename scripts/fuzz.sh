#!/usr/bin/env bash
# Fuzzes every parser that eats hostile bytes, FUZZ_SECONDS (60) each.
#
#   scripts/fuzz.sh [TARGET...]
#
# What is found goes to target/fuzz-corpus and fuzz/artifacts; the committed
# corpus in fuzz/corpus, which `make test` replays on stable, is only read.
# Fuzzing needs the compiler's sanitizers, hence nightly.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"

need_cargo
cargo +nightly --version >/dev/null 2>&1 ||
    die "no nightly toolchain; run: rustup toolchain install nightly --profile minimal"
need c++=g++
need_cargo_tool cargo-fuzz +nightly

targets=("$@")
if [ ${#targets[@]} = 0 ]; then
    list=$(cargo +nightly fuzz list)
    mapfile -t targets <<<"$list"
fi
[ -n "${targets[0]}" ] || die "cargo fuzz list names no target"

failed=()
for target in "${targets[@]}"; do
    note "fuzzing $target for ${FUZZ_SECONDS:-60} s"
    # libFuzzer writes to the first folder and only reads the others.
    corpus=("$ROOT/target/fuzz-corpus/$target")
    mkdir -p "${corpus[0]}"
    [ ! -d "fuzz/corpus/$target" ] || corpus+=("$ROOT/fuzz/corpus/$target")
    cargo +nightly fuzz run "$target" "${corpus[@]}" -- \
        -max_total_time="${FUZZ_SECONDS:-60}" || failed+=("$target")
done

printf 'fuzz: %d targets, %d failed%s\n' \
    "${#targets[@]}" "${#failed[@]}" "${failed[*]:+: ${failed[*]}}"
[ ${#failed[@]} = 0 ]
