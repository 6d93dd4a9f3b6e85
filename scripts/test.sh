#!/usr/bin/env bash
# Everything that a change must pass, in order, cheapest first. Stops at the first
# part that fails; the table of times comes in any case.
#
#   scripts/test.sh           all parts
#   scripts/test.sh PART...   only these (what they need must be built already)
#
# To add a part: write part_NAME, which fails by its exit code, and put NAME in PARTS.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"

PARTS=(setup scripts fmt clippy unit schedules contract release attack vm)

part_setup() {
    scripts/setup.sh
}

part_scripts() {
    shellcheck -x -P SCRIPTDIR .ci/run scripts/*.sh scripts/vm/*.sh scripts/vm/modes/*.sh \
        scripts/vm/guest/{stage1,stage2,run-job,in-mode,run-modes}
}

part_fmt() {
    cargo fmt --all --check
}

part_clippy() {
    cargo clippy --workspace --all-targets -- -D warnings
}

# Includes conformance, layering, the replay of the fuzzers' corpus, and README.
part_unit() {
    cargo test --workspace --no-fail-fast
}

part_schedules() {
    scripts/schedules.sh
}

# Every answer of a running service is one that its OpenAPI document has.
part_contract() {
    scripts/contract.sh
}

part_release() {
    scripts/build.sh
}

part_attack() {
    ATTACK_PROFILE=dev scripts/attack.sh --quick
}

part_vm() {
    scripts/vm/bundle.sh
    scripts/test-vm.sh
}

main() {
    local parts=("${PARTS[@]}") part
    [ $# = 0 ] || parts=("$@")
    for part in "${parts[@]}"; do
        [[ " ${PARTS[*]} " == *" $part "* ]] ||
            die "no part '$part'; there are: ${PARTS[*]}"
    done

    local table="" failed="" code start took total=0
    for part in "${parts[@]}"; do
        if [ -n "$failed" ]; then
            table+=$(printf '%-10s %8s   not run' "$part" -)$'\n'
            continue
        fi
        note "$part"
        start=$(now_ms)
        # Not `if (...)`: bash ignores -e in all that a condition calls.
        set +e
        (
            set -e
            "part_$part"
        )
        code=$?
        set -e
        took=$(($(now_ms) - start))
        total=$((total + took))
        local result=passed
        if [ "$code" != 0 ]; then
            failed=$part
            result="FAILED ($code)"
        fi
        table+=$(printf '%-10s %8s   %s' "$part" "$(seconds "$took")" "$result")$'\n'
    done

    printf '\n%-10s %8s   %s\n' part seconds result
    printf '%s' "$table"
    local verdict=passed
    [ -z "$failed" ] || verdict="FAILED in $failed"
    printf '%-10s %8s   %s\n' total "$(seconds "$total")" "$verdict"
    [ -z "$failed" ]
}

main "$@"
