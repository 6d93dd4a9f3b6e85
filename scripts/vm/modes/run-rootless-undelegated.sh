#!/usr/bin/env bash
# As an ordinary user without delegation: strict mode refuses and says what to do,
# and best effort runs and says what is missing.
set -euo pipefail
cd "$(dirname "$0")"

fail() {
    echo "$1" >&2
    exit 1
}

code=0
refusal=$(./cofferdam run -- /bin/true 2>&1) || code=$?
[ "$code" = 125 ] || fail "strict mode ended with $code: $refusal"
[ "$(wc -l <<<"$refusal")" = 1 ] || fail "not one line: $refusal"
grep -q 'not delegated' <<<"$refusal" || fail "no reason: $refusal"
grep -q 'systemd-run --user --scope -p Delegate=yes' <<<"$refusal" || fail "no fix: $refusal"

report=$(./cofferdam run --isolation best-effort --json -- /bin/echo here)
grep -q '"stdout":"here\\n"' <<<"$report" || fail "best effort did not run: $report"
for control in memory_limit pids_limit cpu_limit; do
    grep -q "\"control\":\"$control\",\"state\":\"absent\"" <<<"$report" || fail "$control is not absent: $report"
done
for control in seccomp capabilities user_namespace net_namespace read_only_root disk_limit; do
    grep -q "\"control\":\"$control\",\"state\":\"enforced\"" <<<"$report" || fail "$control is not enforced: $report"
done
