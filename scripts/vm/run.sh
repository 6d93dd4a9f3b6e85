#!/usr/bin/env bash
# Runs a command in the test VM; its output, as it appears, and its exit code
# come back. The machine is built on first use (build.sh) and is gone afterwards;
# only what was written to the shared folder stays.
#
#   scripts/vm/run.sh [--root|--rootless|--rootless-undelegated] [DIR] COMMAND
#
# DIR (default $SHARE, else the working directory) is at /mnt in the machine and
# is the command's working directory. COMMAND is given to bash, as
#   --root                  root; the unified cgroup tree and no systemd (default)
#   --rootless              uid 1000 in a delegated scope of its own
#   --rootless-undelegated  uid 1000 in a plain su shell, nothing delegated
# The rootless modes boot systemd; SYSTEMD=1 does so for --root, too. There the
# command `in-mode MODE COMMAND...` switches mode within one boot.
#
# Other settings: MEM (MiB, 2048), SMP (2), TIMEOUT (seconds, 300), VERBOSE=1
# (times and console), ACCEL (tcg; kvm where the machine really can), APPEND
# (kernel arguments).
# Exit codes: the command's; 125 when the machine itself failed.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../lib.sh
. "$HERE/../lib.sh"

VM=${COFFERDAM_CACHE:-$HOME/.cache/cofferdam}/vm

main() {
    parse_arguments "$@"
    "$HERE/build.sh" || exit 125

    # Held until this script ends: build.sh waits for it before it replaces anything.
    exec 8<"$VM/lock"
    flock --shared 8

    work=$(mktemp -d)
    trap clean_up EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM

    prepare_job
    share root "$VM/rootfs" always
    share job "$work/job" none
    share share "$share" auto
    wait_for_shares
    local started
    started=$(now_ms)
    boot
    report "$started"
}

usage() {
    sed -n '/^#   scripts/,/^# Exit codes/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 125
}

parse_arguments() {
    mode=root
    case ${1:-} in
        --root | --rootless | --rootless-undelegated)
            mode=${1#--}
            shift
            ;;
        -*) usage ;;
    esac
    share=${SHARE:-$PWD}
    if [ $# = 2 ]; then
        share=$1
        shift
    fi
    [ $# = 1 ] || usage
    command=$1
    [ -d "$share" ] || die "no such folder to share: $share"
    share=$(readlink -f "$share")

    with_systemd=${SYSTEMD:-}
    [ "$mode" = root ] || with_systemd=1
}

# Ends what this script started and nothing else.
# shellcheck disable=SC2317 # called by the trap
clean_up() {
    local pid
    # Asked anew, because the number of a process that ended may be another's now.
    for pid in $(jobs -pr); do
        kill "$pid" 2>/dev/null || true
    done
    wait 2>/dev/null || true
    rm -rf "$work"
}

prepare_job() {
    mkdir "$work/job"
    printf '%s\n' "$command" >"$work/job/command"
    printf '%s\n' "$mode" >"$work/job/mode"
    [ -z "$with_systemd" ] || : >"$work/job/systemd"
    : >"$work/job/stdout"
    : >"$work/job/stderr"
    # The rootless modes read the command, whatever the umask here.
    chmod 755 "$work/job"
    chmod 644 "$work/job/command"
}

# share NAME DIR CACHE: serves a folder to the machine over a socket.
share() {
    local options=(--socket-path="$work/$1.socket")
    local daemon=/usr/lib/qemu/virtiofsd
    if [ -x "$daemon" ]; then
        options+=(-o "source=$2" -o "cache=$3" -o sandbox=chroot)
    else
        # Debian 13 has the rewrite, with flags of its own.
        daemon=/usr/libexec/virtiofsd
        [ -x "$daemon" ] || die "no virtiofsd; run: apt-get install virtiofsd"
        options+=(--shared-dir "$2" --cache "${3/none/never}" --sandbox chroot)
    fi
    "$daemon" "${options[@]}" >"$work/$1.log" 2>&1 8<&- &
}

wait_for_shares() {
    local name tries
    for name in root job share; do
        for ((tries = 0; tries < 250; tries++)); do
            [ -S "$work/$name.socket" ] && continue 2
            sleep 0.02
        done
        cat "$work/$name.log" >&2
        printf 'vm: virtiofsd for %s did not start\n' "$name" >&2
        exit 125
    done
}

boot() {
    local qemu=(qemu-system-x86_64)
    if [ -d "$VM/qemu" ]; then
        qemu=("$VM/qemu/usr/bin/qemu-system-x86_64"
            -L "$VM/qemu/usr/share/qemu" -L "$VM/qemu/usr/share/seabios")
    fi

    local accel=(-accel "tcg,thread=multi" -cpu max)
    [ "${ACCEL:-tcg}" = tcg ] || accel=(-accel "$ACCEL" -cpu host)

    # Emulation needs neither mitigations nor a second opinion on its clock.
    local kernel_arguments="console=hvc0 quiet panic=-1 rootfstype=virtiofs root=root ro"
    kernel_arguments+=" init=/usr/lib/cofferdam-vm/stage1"
    kernel_arguments+=" mitigations=off nokaslr tsc=reliable"
    kernel_arguments+=" systemd.show_status=0 systemd.log_level=err ${APPEND:-}"

    local mem=${MEM:-2048} name devices=()
    for name in root job share; do
        devices+=(-chardev "socket,id=$name,path=$work/$name.socket"
            -device "vhost-user-fs-pci,chardev=$name,tag=$name")
    done

    timeout --kill-after=5 "${TIMEOUT:-300}" "${qemu[@]}" \
        -M q35 "${accel[@]}" -smp "${SMP:-2}" -m "$mem" \
        -object "memory-backend-memfd,id=memory,size=${mem}M,share=on" \
        -numa node,memdev=memory \
        -nodefaults -no-user-config -nographic -no-reboot \
        -chardev "file,id=console,path=$work/console.log" \
        -device virtio-serial-pci -device virtconsole,chardev=console \
        -device virtio-rng-pci "${devices[@]}" \
        -kernel "$VM/vmlinuz" -append "$kernel_arguments" \
        </dev/null >"$work/qemu.log" 2>&1 8<&- &
    local machine=$!

    # Both end by themselves once the machine is off and everything was shown.
    tail --bytes=+1 --follow --sleep-interval=0.1 --pid="$machine" "$work/job/stdout" &
    local out=$!
    tail --bytes=+1 --follow --sleep-interval=0.1 --pid="$machine" "$work/job/stderr" >&2 &
    local err=$!
    wait "$out" "$err"
    machine_code=0
    wait "$machine" || machine_code=$?
}

# report STARTED: exits with the command's code.
report() {
    if [ -n "${VERBOSE:-}" ]; then
        cat "$work/console.log" >&2
        printf 'vm: %s s in all; the command began at %s s\n' \
            "$(seconds $(($(now_ms) - $1)))" "$(cat "$work/job/started" 2>/dev/null)" >&2
    fi
    if [ -f "$work/job/exit-code" ]; then
        exit "$(cat "$work/job/exit-code")"
    fi
    if [ "$machine_code" = 124 ]; then
        printf 'vm: stopped after TIMEOUT=%s s; the console said:\n' "${TIMEOUT:-300}" >&2
    else
        printf 'vm: the machine ended (QEMU code %s) without an exit code; the console said:\n' \
            "$machine_code" >&2
    fi
    tail -n 20 "$work/console.log" "$work/qemu.log" >&2
    exit 125
}

main "$@"
