#!/usr/bin/env bash
# As an ordinary user in a delegated cgroup: everything that root has, but for the
# devices controller, which version 2 does not have. Conformance, then attacks.
set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=attack.sh
. ./attack.sh

COFFERDAM_LAUNCHER=$PWD/cofferdam-launcher RUST_BACKTRACE=0 ./conformance --test-threads=2

report=$(./cofferdam run --json -- /bin/true)
weaker=$(grep -o '"control":"[a-z_]*","state":"\(absent\|degraded\)"' <<<"$report")
[ "$weaker" = '"control":"devices_limit","state":"absent"' ] || {
    echo "not enforced: $weaker" >&2
    exit 1
}

attack rootless-v2
