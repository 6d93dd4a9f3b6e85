#!/usr/bin/env bash
# Tests a running service against its own OpenAPI documents with schemathesis: with a
# key, every operation, alone and one after the other, with data that fits the
# document and data that does not. No 5xx, and no answer that the document lacks.
# The documents: the API's (of serve), a worker's, and what workers ask of control.
#
#   scripts/contract.sh [OPTION...]   options go on to schemathesis
#
# CONTRACT_BINARY is the program (target/debug/cofferdam), CONTRACT_SEED makes a run
# repeatable; the one that was used is printed. CONTRACT_PARTS names some of the
# documents: "api worker internal". It starts its own servers, on ports and folders of
# their own.
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
started=()
# A worker that is told to stop waits for those who have asked it for runs; nobody has.
# shellcheck disable=SC2317,SC2329 # called by the trap
clean() {
    cd /
    local process
    for process in "${started[@]}"; do kill -KILL "$process" 2>/dev/null || true; done
    wait || true
    rm -rf "$work"
}
trap clean EXIT

# start NAME WORD...: starts the program, and sets $url to where it listens.
start() {
    local name=$1
    shift
    : >"$work/$name.said"
    "$binary" "$@" --listen 127.0.0.1:0 >"$work/$name.said" 2>"$work/$name.log" &
    local process=$!
    started+=("$process")
    url=""
    for _ in $(seq 200); do
        url=$(sed -n 's/^.*listening on //p' "$work/$name.said")
        [ -z "$url" ] || return 0
        kill -0 "$process" 2>/dev/null || die "$name did not start: $(cat "$work/$name.log")"
        sleep 0.1
    done
    die "$name does not listen"
}

# Another each time; but where a change is judged, always the same: what it is refused for is then its own.
[ -z "${CI:-}" ] || CONTRACT_SEED=${CONTRACT_SEED:-3357844102}
seed=${CONTRACT_SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}

# check CONFIG HOOKS DOCUMENT [OPTION...]: every operation of a document, against who serves it.
check() {
    local config=$1 hooks=$2 document=$3
    shift 3
    note "schemathesis against $document, seed $seed"
    # It writes into the folder that it is started in.
    (
        cd "$work"
        PYTHONPATH=$ROOT/scripts/contract SCHEMATHESIS_HOOKS=$hooks PYTHONDONTWRITEBYTECODE=1 "$schemathesis" \
            --config-file "$ROOT/scripts/contract/$config" run \
            --checks all --mode all --phases examples,coverage,fuzzing,stateful \
            --max-examples "$EXAMPLES" --seed "$seed" --generation-database none \
            --request-timeout "$ANSWER_SECONDS" --continue-on-failure --no-color \
            "$@" "$document"
    )
}

# A server that has died in the meantime is a failure, whatever the answers were.
alive() {
    curl -sf "$1" >/dev/null || die "$2 is gone: $(tail -5 "$work/$2.log")"
}

check_api() {
    # More room than all the sessions of a test need, and no disk that this machine might not have free just now:
    # without room the answer is a 503.
    COFFERDAM_LIMITS_DISK_MAX=2g start serve serve --data "$work/data" --slots 100000 --memory 1000000g
    local api=$url code=0
    # The key is in the environment, which the configuration names, and so in no list of processes.
    COFFERDAM_CONTRACT_KEY=$(cat "$work/data/admin.key")
    COFFERDAM_CONTRACT_KEY_ID=$(printf 'header = "X-API-Key: %s"\n' "$COFFERDAM_CONTRACT_KEY" |
        curl -sf --config - "$api/v1/keys" | sed -n 's/.*"id":"\(key-[a-z0-9]*\)".*/\1/p')
    [ -n "$COFFERDAM_CONTRACT_KEY_ID" ] || die "the server does not list its first key"
    COFFERDAM_CONTRACT_TENANT_ID=$(printf 'header = "X-API-Key: %s"\n' "$COFFERDAM_CONTRACT_KEY" |
        curl -sf --config - "$api/v1/tenants" | sed -n 's/.*"id":"\(ten-[a-z0-9]*\)".*/\1/p')
    [ -n "$COFFERDAM_CONTRACT_TENANT_ID" ] || die "the server does not list its first tenant"
    export COFFERDAM_CONTRACT_KEY COFFERDAM_CONTRACT_KEY_ID COFFERDAM_CONTRACT_TENANT_ID
    check schemathesis.toml hooks "$api/openapi.json" "$@" || code=$?
    alive "$api/readyz" serve
    return "$code"
}

# Control and a worker apart, each asked as the other would.
apart() {
    [ -z "${control:-}" ] || return 0
    start control control --data "$work/apart"
    control=$url
    # More room than all the runs of a test need: a worker that is full answers 503.
    # What it is told to keep is not this machine's.
    COFFERDAM_IMAGES=$work/images start worker worker --control "$control" --service-token-file "$work/apart/service.token" \
        --slots 100000 --memory 1000000g
    worker=$url
    COFFERDAM_CONTRACT_TOKEN=$(cat "$work/apart/service.token")
    COFFERDAM_CONTRACT_WORKER_ID=$(sed -n 's/^worker \([^ ]*\) .*/\1/p' "$work/worker.said")
    export COFFERDAM_CONTRACT_TOKEN COFFERDAM_CONTRACT_WORKER_ID
}

check_worker() {
    local code=0
    apart
    check worker.toml worker_hooks "$worker/openapi.json" "$@" || code=$?
    alive "$worker/healthz" worker
    return "$code"
}

check_internal() {
    local code=0
    apart
    check worker.toml worker_hooks "$control/internal/openapi.json" "$@" || code=$?
    alive "$control/healthz" control
    return "$code"
}

failed=""
for part in ${CONTRACT_PARTS:-api worker internal}; do
    "check_$part" "$@" || failed="$failed $part"
done
[ -z "$failed" ] || die "these contracts do not hold:$failed"
