#!/usr/bin/env bash
# From a fresh checkout to a service that runs code: builds, starts it on embedded
# defaults, runs a sample through it, and says how to run more. It stays until it is
# stopped with Ctrl-C. UP_ONCE=1 stops it after the sample.
#
# DATA (./data) is the folder of its database and first key, LISTEN (127.0.0.1:8080)
# its address.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"

[ "$(uname -s) $(uname -m)" = "Linux x86_64" ] ||
    die "Cofferdam runs on Linux on x86-64; this is $(uname -s) on $(uname -m)"
need_cargo

note "building"
scripts/build.sh

data=${DATA:-data} listen=${LISTEN:-127.0.0.1:8080}
need curl=curl

"$RELEASE_BINARY" serve --data "$data" --listen "$listen" &
server=$!
# shellcheck disable=SC2064 # the number as it is now
trap "kill -TERM $server 2>/dev/null || true; wait $server || true" EXIT

for _ in $(seq 100); do
    curl -sf "http://$listen/readyz" >/dev/null && break
    kill -0 "$server" 2>/dev/null || {
        printf 'The service did not start. What this machine lacks:\n' >&2
        "$RELEASE_BINARY" doctor >&2 || true
        exit 1
    }
    sleep 0.1
done

cat >&2 <<TEXT

Run code with the key that is in $data/admin.key:

  curl -H "X-API-Key: \$(cat $data/admin.key)" 'http://$listen/v1/jobs?wait_ms=30000' \\
       -d '{"language":"python","code":"print(\\"hello from the sandbox\\")"}'

TEXT
printf 'It answers:\n\n' >&2
# The key is read by curl itself, so that no list of processes shows it.
printf 'header = "X-API-Key: %s"\n' "$(cat "$data/admin.key")" |
    curl -sf --config - "http://$listen/v1/jobs?wait_ms=30000" \
        -d '{"language":"python","code":"print(\"hello from the sandbox\")"}' |
    sed 's/"isolation":{.*"mode":"strict"}/"isolation":{…}/'
printf '\n\n' >&2
note "the binary is $RELEASE_BINARY; it can also run code without a service: cofferdam run -c 'print(1)'"
[ -z "${UP_ONCE:-}" ] || exit 0
note "the service runs; Ctrl-C stops it"
wait "$server"
