#!/usr/bin/env bash
# Measures which lines the tests reach, crate by crate. A crate below 90% fails,
# unless scripts/coverage-exceptions.txt gives the reason.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"

MINIMUM=90
EXCEPTIONS=scripts/coverage-exceptions.txt
LCOV=target/coverage.lcov

# The tools that read the profile must be of the compiler's own LLVM: an older
# one refuses its format ("unsupported instrumentation profile format version").
find_llvm() {
    local bin major
    bin=$(rustc --print sysroot)/lib/rustlib/$TARGET/bin
    [ ! -x "$bin/llvm-cov" ] || return 0
    if command -v rustup >/dev/null; then
        note "adding rustup's llvm-tools"
        rustup component add llvm-tools && return 0
    fi

    major=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
    if ! is_present "llvm-cov-$major" && [ "$(id -u)" = 0 ] && is_present apt-get; then
        note "installing Debian's llvm-$major"
        apt-get update -qq
        apt-get install -y -qq --no-install-recommends "llvm-$major" >/dev/null || true
    fi
    is_present "llvm-cov-$major" ||
        die "no llvm-cov of LLVM $major, which $(rustc --version) uses; run: rustup component add llvm-tools, or: apt-get install llvm-$major"
    export LLVM_COV=llvm-cov-$major LLVM_PROFDATA=llvm-profdata-$major
    LLVM_COV=$(command -v "$LLVM_COV")
    LLVM_PROFDATA=$(command -v "$LLVM_PROFDATA")
}

# Reads the exceptions, then the lcov records; a crate is the folder above src/.
print_table() {
    awk -v root="$ROOT/" -v minimum="$MINIMUM" '
        FNR == NR {
            if ($0 !~ /^[[:space:]]*(#|$)/) {
                crate = $1
                sub(/^[^[:space:]]+[[:space:]]*/, "")
                if ($0 == "") {
                    printf "%s is listed without a reason\n", crate
                    bad = 1
                }
                reason[crate] = $0
            }
            next
        }
        /^SF:/ {
            crate = substr($0, 4)
            if (index(crate, root) == 1) crate = substr(crate, length(root) + 1)
            sub(/\/src\/.*/, "", crate)
        }
        /^LF:/ { lines[crate] += substr($0, 4) }
        /^LH:/ { hit[crate] += substr($0, 4) }
        END {
            printf "%-28s %7s %7s %7s\n", "crate", "lines", "hit", "%"
            count = 0
            for (crate in lines) names[++count] = crate
            for (i = 2; i <= count; i++)
                for (j = i; j > 1 && names[j] < names[j - 1]; j--) {
                    swap = names[j]; names[j] = names[j - 1]; names[j - 1] = swap
                }
            for (i = 1; i <= count; i++) {
                crate = names[i]
                percent = lines[crate] ? 100 * hit[crate] / lines[crate] : 100
                verdict = ""
                if (percent < minimum && crate in reason)
                    verdict = "excepted: " reason[crate]
                else if (percent < minimum) {
                    verdict = "BELOW " minimum "%"
                    bad = 1
                } else if (crate in reason)
                    verdict = "listed as an exception, and no longer needs it"
                printf "%-28s %7d %7d %7.1f  %s\n", crate, lines[crate], hit[crate], percent, verdict
            }
            for (crate in reason)
                if (!(crate in lines)) {
                    printf "%s is listed as an exception, and there is no such crate\n", crate
                    bad = 1
                }
            if (!count) { print "nothing was measured"; bad = 1 }
            exit bad
        }' "$EXCEPTIONS" "$LCOV"
}

need_cargo
need_cargo_tool cargo-llvm-cov
find_llvm
mkdir -p target
# One failing test is no reason to know nothing of the others.
cargo llvm-cov --workspace --no-fail-fast --lcov --output-path "$LCOV"
print_table
