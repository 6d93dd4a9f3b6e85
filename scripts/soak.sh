#!/usr/bin/env bash
# Runs sandboxes that end in every way for SOAK_SECONDS (600), two at a time, and
# then compares the machine with how it was: mounts, cgroups, loop devices and
# processes of ours. Leaks that one run hides show after thousands. Then kills the
# server, and control and its workers, SOAK_KILLS (1000) times each under load. First
# of all it builds the image of every profile and tries it.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"

# How long removal may go on after the last command returned.
SETTLE_SECONDS=30

# One name a line, sorted, of all that a sandbox could leave behind.
inventory() {
    awk '{ print "mount", $5 }' /proc/self/mountinfo
    find /sys/fs/cgroup -type d -printf 'cgroup %p\n' 2>/dev/null || true
    find /sys/block -name 'loop*' -exec test -e '{}/loop/backing_file' ';' -printf 'loop %f\n'
    ps -e -o comm= | awk '$1 == "cofferdam" { print "process", $1 }'
}

# run_one NUMBER: success, failure, a signal, time-out, memory or output limit.
# Only our own failure (125) counts against the soak.
run_one() {
    local arguments
    # shellcheck disable=SC2016 # $$ is for the shell in the sandbox
    case $(($1 % 6)) in
        0) arguments=(-- /bin/true) ;;
        1) arguments=(-- /bin/sh -c 'exit 3') ;;
        2) arguments=(-- /bin/sh -c 'kill -9 $$') ;;
        3) arguments=(--timeout 1s -- /bin/sh -c 'trap "" TERM; setsid sleep 60 & sleep 60') ;;
        4) arguments=(--memory 64m -- /bin/sh -c 'head -c 500000000 /dev/zero >big; tail -c 200000000 /dev/zero') ;;
        5) arguments=(-- /bin/sh -c 'head -c 20000000 /dev/zero') ;;
    esac
    local code=0
    "$RELEASE_BINARY" run "${arguments[@]}" >/dev/null 2>&1 </dev/null || code=$?
    [ "$code" != 125 ] || printf 'failed: cofferdam run %s\n' "${arguments[*]}"
}

# soak LANE: every second number, until the time is up.
soak() {
    local number=$1
    while [ "$(now_ms)" -lt "$deadline" ]; do
        run_one "$number" >>"$work/failures"
        printf '.\n' >>"$work/runs"
        number=$((number + 1))
    done
}

# build_profiles: every profile's image from nothing, and its own check on it. Prints a
# table; what failed said why before it.
build_profiles() {
    local recipe profile built checked start seconds failed=0
    export COFFERDAM_IMAGES=$work/images
    for recipe in deploy/images/*.toml; do
        profile=$(basename "$recipe" .toml)
        note "building $profile"
        built=failed checked=-
        start=$(now_ms)
        if "$RELEASE_BINARY" image build-profile "$profile" >"$work/built" 2>&1; then
            built=$(sed -n 2p "$work/built") checked=failed
            if "$RELEASE_BINARY" image check "$profile" --profile "$profile" >"$work/checked" 2>&1; then
                checked="$(grep -c '^ok' "$work/checked") ok"
            else
                grep -v '^ok' "$work/checked" >&2
            fi
        else
            cat "$work/built" >&2
        fi
        seconds=$((($(now_ms) - start) / 1000))
        [ "${checked% ok}" != "$checked" ] || failed=1
        printf '%-18s %-10s %-8s %5d s\n' "$profile" "$built" "$checked" "$seconds" >>"$work/profiles"
    done
    printf '%-18s %-10s %-8s %7s\n' PROFILE SIZE CHECKS TOOK
    cat "$work/profiles"
    unset COFFERDAM_IMAGES
    rm -rf "$work/images"
    [ "$failed" = 0 ] || die "a profile's image cannot be built, or fails its check"
}

main() {
    scripts/build.sh
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    build_profiles
    : >"$work/failures"
    : >"$work/runs"

    # What is made once and kept, such as parent cgroups, is no leak.
    "$RELEASE_BINARY" run -- /bin/true || die "not even one sandbox works here"
    inventory | sort >"$work/before"

    deadline=$(($(now_ms) + ${SOAK_SECONDS:-600} * 1000))
    note "running sandboxes for ${SOAK_SECONDS:-600} s"
    soak 0 &
    soak 3 &
    wait

    local tries
    for ((tries = 0; tries < SETTLE_SECONDS; tries++)); do
        inventory | sort >"$work/after"
        cmp -s "$work/before" "$work/after" && break
        sleep 1
    done

    local failures
    failures=$(wc -l <"$work/failures")
    printf 'soak: %d runs, %d failed of our own\n' "$(wc -l <"$work/runs")" "$failures"
    sort "$work/failures" | uniq -c
    diff "$work/before" "$work/after" || die "the machine is not as it was (> was left, < is gone)"
    [ "$failures" = 0 ]

    note "killing the service ${SOAK_KILLS:-1000} times"
    COFFERDAM_KILLS=${SOAK_KILLS:-1000} COFFERDAM_SESSION_KILLS=${SOAK_KILLS:-1000} \
        cargo test -p cofferdam-cli --test serve -- faults:: --nocapture
}

main
