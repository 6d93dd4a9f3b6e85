#!/bin/bash
# Prepares one machine for the benchmark: the peers, from Debian's packages alone, and the one root filesystem
# that every contestant runs in. Needs root, a Debian bookworm and its mirror; two minutes the first time, a
# second afterwards.
#
# A peer that cannot be installed leaves its reason in $BENCH/absent/NAME, which the benchmark shows in its
# table; only a missing root filesystem stops the set-up. Images and OCI bundles are made by the benchmark
# itself: it owns the daemon that an import needs, and the workloads that a bundle names.
set -euo pipefail

BENCH=${COFFERDAM_CACHE:-$HOME/.cache/cofferdam}/bench
ROOTFS=$BENCH/rootfs
LOG=$BENCH/setup.log
POLICY=/usr/sbin/policy-rc.d
LISTS_FRESH=

say() { echo "bench/setup: $*" >&2; }
die() { say "$*"; exit 1; }

# The package lists are refreshed at most once, and only when something has to be fetched.
refresh_lists() {
    [ -n "$LISTS_FRESH" ] || apt-get update -qq >>"$LOG" 2>&1 || return 1
    LISTS_FRESH=yes
}

apt_install() {
    dpkg -s "$@" >/dev/null 2>&1 && return
    say "installing $*"
    refresh_lists && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >>"$LOG" 2>&1
}

# Installing docker.io would start the machine's own dockerd; the benchmark wants the files only.
without_services() {
    if [ -e $POLICY ]; then "$@"; return; fi
    printf '#!/bin/sh\nexit 101\n' >$POLICY
    chmod 755 $POLICY
    trap 'rm -f $POLICY' EXIT
    local status=0
    "$@" || status=$?
    rm -f $POLICY
    trap - EXIT
    return $status
}

mirror() { apt-get indextargets --format '$(SITE)' 'Codename: bookworm' | sed -n 1p; }

find_mirror() {
    local found
    found=$(mirror)
    [ -n "$found" ] || { refresh_lists; found=$(mirror); }
    [ -n "$found" ] || { say "no bookworm mirror among apt's sources"; return 1; }
    echo "$found"
}

# gVisor comes from bookworm-backports through an apt configuration of its own, unpacked beside the cache
# rather than installed, so that the machine's sources and package database stay as they are.
fetch_runsc() {
    local apt=$BENCH/apt
    [ ! -x "$BENCH/runsc/usr/bin/runsc" ] || return 0
    say "fetching runsc from bookworm-backports"
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(find_mirror) bookworm-backports main" >"$apt/sources.list"
    cat >"$apt/apt.conf" <<CONF
Dir::State "$apt"; Dir::State::lists "$apt/lists"; Dir::State::status "/var/lib/dpkg/status"; Dir::Cache "$apt/cache";
Dir::Etc::sourcelist "$apt/sources.list"; Dir::Etc::sourceparts "/dev/null"; Dir::Etc::preferencesparts "/dev/null";
APT::Sandbox::User "root";
CONF
    (
        cd "$apt"
        export APT_CONFIG=$apt/apt.conf
        apt-get update -qq && apt-get download -qq runsc && dpkg-deb -x runsc_*.deb "$BENCH/runsc.new"
    ) >>"$LOG" 2>&1 || return 1
    rm -rf "$apt" "$BENCH/runsc"
    mv "$BENCH/runsc.new" "$BENCH/runsc"
}

# The stamp names this very tree: images imported from an older one are never mistaken for it.
make_rootfs() {
    [ ! -e "$BENCH/rootfs.stamp" ] || return 0
    say "making the root filesystem (debootstrap minbase and python3)"
    rm -rf "$ROOTFS"
    debootstrap --variant=minbase --include=python3 bookworm "$ROOTFS" "$(find_mirror)" >>"$LOG" 2>&1 \
        || die "debootstrap failed; see $LOG"
    rm -rf "$ROOTFS"/var/cache/apt/* "$ROOTFS"/var/lib/apt/lists/*
    date -u +%Y%m%dt%H%M%S >"$BENCH/rootfs.stamp"
}

# peer NAME COMMAND…: runs it, and keeps what went wrong for the table.
peer() {
    local name=$1 reason
    shift
    rm -f "$BENCH/absent/$name"
    : >"$LOG.peer"
    if LOG=$LOG.peer "$@"; then say "$name: ready"; else
        reason=$(grep -E '^(E|W|dpkg|Err)' "$LOG.peer" | tail -1 || true)
        echo "could not be installed: ${reason:-see $LOG}" >"$BENCH/absent/$name"
        say "$name: absent, $(cat "$BENCH/absent/$name")"
    fi
    cat "$LOG.peer" >>"$LOG"
    rm -f "$LOG.peer"
}

[ "$(id -u)" = 0 ] || die "needs root (apt-get, debootstrap)"
command -v apt-get >/dev/null || die "needs Debian's apt-get"
mkdir -p "$BENCH/absent"
chmod 755 "$BENCH"
: >"$LOG"
apt_install debootstrap xfsprogs || die "debootstrap and xfsprogs cannot be installed; see $LOG"
make_rootfs
peer bwrap apt_install bubblewrap
peer runc apt_install runc
peer podman apt_install podman runc
peer docker without_services apt_install docker.io runc
peer runsc fetch_runsc
say "root filesystem: $ROOTFS"
