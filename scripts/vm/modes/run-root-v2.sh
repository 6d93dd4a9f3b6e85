#!/usr/bin/env bash
# As root on unified cgroup v2: the conformance suite, the command itself, and the
# attack suite.
set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=attack.sh
. ./attack.sh

# Everything else of this machine is in memory, where no disk of a sandbox may be.
disks=$(mktemp -d "$PWD/disks.XXXXXX")
COFFERDAM_LAUNCHER=$PWD/cofferdam-launcher RUST_BACKTRACE=0 TMPDIR=$disks ./conformance --test-threads=2
rmdir "$disks"

[ "$(./cofferdam run -c 'print(6 * 7)')" = 42 ]
left=$(find /sys/fs/cgroup/cofferdam -mindepth 1 -maxdepth 1 -type d -name 's[0-9]*' | wc -l)
for _ in $(seq 50); do
    [ "$left" = 0 ] && break
    sleep 0.1
    left=$(find /sys/fs/cgroup/cofferdam -mindepth 1 -maxdepth 1 -type d -name 's[0-9]*' | wc -l)
done
[ "$left" = 0 ] || {
    echo "groups left behind: $left" >&2
    exit 1
}

attack root-v2
