#!/usr/bin/env bash
# Checks all dependencies against deny.toml: licences, bans, sources, and known
# advisories. The advisory database is on GitHub; where it cannot be reached that
# check cannot be made, and this says so. ADVISORIES=required makes that a failure.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"

need_cargo
need_cargo_tool cargo-deny

cargo deny --all-features check licenses bans sources

log=$(mktemp)
trap 'rm -f "$log"' EXIT
if cargo deny fetch db >"$log" 2>&1; then
    cargo deny --all-features --offline check advisories
    exit 0
fi

cat "$log" >&2
cat >&2 <<'TEXT'

************************************************************************
 ADVISORIES WERE NOT CHECKED: the RustSec database could not be fetched
 (the reason is above). Licences, bans and sources were checked.
************************************************************************
TEXT
[ "${ADVISORIES:-}" != required ]
