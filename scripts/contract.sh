#!/usr/bin/env bash
# Tests a running service against its own OpenAPI document with schemathesis: with a
# key, every operation, alone and one after the other, with data that fits the
# document and data that does not. No 5xx, and no answer that the document lacks.
#
#   scripts/contract.sh [OPTION...]   options go on to schemathesis
#
# CONTRACT_BINARY is the program (target/debug/cofferdam), CONTRACT_SEED makes a run
# repeatable; the one that was used is printed. It starts its own server, on a port and
# a folder of its own.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"

# Each operation gets so many examples of each kind.
EXAMPLES=100
# One worker: Python 3.11 cannot parse its own source in two threads at once.
# More than any answer takes: a job is waited for for a minute at most.
ANSWER_SECONDS=75

binary=${CONTRACT_BINARY:-target/debug/cofferdam}
[ -x "$binary" ] || die "$binary is missing; build it with: cargo build -p cofferdam-cli"

# A version of the tools is a folder of its own, made whole or not at all.
tools() {
    need /usr/share/doc/python3-venv=python3-venv
    local sum folder
    sum=$(sha256sum scripts/contract/requirements.txt | cut -c1-12)
    folder=${COFFERDAM_CACHE:-$HOME/.cache/cofferdam}/schemathesis-$sum
    if [ ! -x "$folder/bin/schemathesis" ]; then
        note "installing schemathesis into $folder"
        rm -rf "$folder"
        mkdir -p "$(dirname "$folder")"
        /usr/bin/python3 -m venv "$folder"
        "$folder/bin/pip" install -q --no-deps -r scripts/contract/requirements.txt || {
            rm -rf "$folder"
            die "schemathesis could not be installed from PyPI"
        }
    fi
    printf '%s\n' "$folder/bin/schemathesis"
}

schemathesis=$(tools)
work=$(mktemp -d)
touch "$work/said"
"$binary" serve --data "$work/data" --listen 127.0.0.1:0 >"$work/said" 2>"$work/log" &
server=$!
# shellcheck disable=SC2064 # the values as they are now
trap "cd /; kill -TERM $server 2>/dev/null || true; wait $server || true; rm -rf '$work'" EXIT

url=""
for _ in $(seq 200); do
    url=$(sed -n 's/^listening on //p' "$work/said")
    [ -z "$url" ] || break
    kill -0 "$server" 2>/dev/null || die "the server did not start: $(cat "$work/log")"
    sleep 0.1
done
[ -n "$url" ] || die "the server does not listen"

seed=${CONTRACT_SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
note "schemathesis against $url, seed $seed"
# The key is in the environment, which the configuration names, and so in no list of processes.
COFFERDAM_CONTRACT_KEY=$(cat "$work/data/admin.key")
COFFERDAM_CONTRACT_KEY_ID=$(printf 'header = "X-API-Key: %s"\n' "$COFFERDAM_CONTRACT_KEY" |
    curl -sf --config - "$url/v1/keys" | sed -n 's/.*"id":"\(key-[a-z0-9]*\)".*/\1/p')
[ -n "$COFFERDAM_CONTRACT_KEY_ID" ] || die "the server does not list its first key"
COFFERDAM_CONTRACT_TENANT_ID=$(printf 'header = "X-API-Key: %s"\n' "$COFFERDAM_CONTRACT_KEY" |
    curl -sf --config - "$url/v1/tenants" | sed -n 's/.*"id":"\(ten-[a-z0-9]*\)".*/\1/p')
[ -n "$COFFERDAM_CONTRACT_TENANT_ID" ] || die "the server does not list its first tenant"
export COFFERDAM_CONTRACT_KEY COFFERDAM_CONTRACT_KEY_ID COFFERDAM_CONTRACT_TENANT_ID
code=0
# It writes into the folder that it is started in.
cd "$work"
PYTHONPATH=$ROOT/scripts/contract SCHEMATHESIS_HOOKS=hooks PYTHONDONTWRITEBYTECODE=1 "$schemathesis" \
    --config-file "$ROOT/scripts/contract/schemathesis.toml" run \
    --checks all --mode all --phases examples,coverage,fuzzing,stateful \
    --max-examples "$EXAMPLES" --seed "$seed" --generation-database none \
    --request-timeout "$ANSWER_SECONDS" --continue-on-failure --no-color \
    "$@" "$url/openapi.json" || code=$?

# A server that has died in the meantime is a failure, whatever the answers were.
curl -sf "$url/readyz" >/dev/null || die "the server is gone: $(tail -5 "$work/log")"
exit "$code"
