#!/usr/bin/env bash
# Builds the virtual machine in which tests meet what this machine may not have:
# unified cgroup v2, systemd with a user session, another kernel.
#
# Everything comes from Debian's packages: a bookworm root filesystem, the cloud
# kernel 6.12 from backports (virtiofs is built in, so no initrd is needed) and,
# where the host's own is too old, QEMU 10 from backports: QEMU 7.2 crashes
# guests at random without KVM.
#
# It takes a minute or two, once, and is kept in
# ${COFFERDAM_CACHE:-$HOME/.cache/cofferdam}/vm. Calling it again costs
# nothing until this script or a file in guest/ changes.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../lib.sh
. "$HERE/../lib.sh"

VM=${COFFERDAM_CACHE:-$HOME/.cache/cofferdam}/vm
SUITE=bookworm
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

# What sandbox tests need inside, besides the minimal system.
GUEST_PACKAGES=(
    systemd systemd-sysv dbus dbus-user-session libpam-systemd udev login
    kmod util-linux procps iproute2 libcap2-bin uidmap e2fsprogs strace
    python3 nodejs
)

# Started by systemd otherwise, for hardware and history that a machine which
# lives for a minute does not have. Each costs half a second under emulation.
MASKED_UNITS=(
    systemd-udevd.service systemd-udev-trigger.service
    systemd-udevd-control.socket systemd-udevd-kernel.socket
    systemd-binfmt.service proc-sys-fs-binfmt_misc.automount
    systemd-modules-load.service systemd-random-seed.service
    systemd-sysusers.service systemd-update-utmp.service
    systemd-journal-flush.service systemd-remount-fs.service
    sys-kernel-config.mount sys-kernel-debug.mount sys-kernel-tracing.mount
    dev-hugepages.mount kmod-static-nodes.service
)

main() {
    check_host
    mkdir -p "$VM"

    # Runs hold this lock shared, so nothing is replaced under a live machine.
    exec 9>"$VM/lock"
    flock 9

    local base guest
    base=$(stamp_of "$HERE/build.sh")
    guest=$(stamp_of "$HERE"/guest/*)

    if ! is_stamped base "$base"; then
        note "building the test VM in $VM (once, a minute or two)"
        rm -f "$VM"/stamp-*
        set_up_apt
        fetch_kernel_and_qemu
        build_root
        rm -rf "$VM/apt" "$VM/download"
        stamp base "$base"
    fi
    if ! is_stamped guest "$guest"; then
        install_guest_files
        stamp guest "$guest"
    fi
}

check_host() {
    [ "$(uname -m)" = x86_64 ] || die "the test VM is x86-64 only, this is $(uname -m)"
    [ "$(id -u)" = 0 ] ||
        die "the test VM needs root: debootstrap makes its root filesystem and virtiofsd shares it with every file's true owner. Run: sudo make test-vm"
    need debootstrap=debootstrap qemu-system-x86_64=qemu-system-x86 \
        "$KEYRING=debian-archive-keyring" flock=util-linux
}

stamp_of() {
    cat "$@" | sha256sum | cut -d' ' -f1
}

is_stamped() {
    [ "$(cat "$VM/stamp-$1" 2>/dev/null)" = "$2" ]
}

stamp() {
    printf '%s\n' "$2" >"$VM/stamp-$1"
}

# The mirror that this machine already uses, so that a local one is respected.
mirror() {
    local url
    # shellcheck disable=SC2016 # $(SITE) is apt's own notation
    url=$(apt-get indextargets --format '$(SITE)' "Codename: $SUITE" 2>/dev/null | sed -n 1p)
    printf '%s\n' "${url:-http://deb.debian.org/debian}"
}

# A private apt configuration: the host's sources and state stay untouched.
set_up_apt() {
    local apt=$VM/apt
    rm -rf "$apt"
    mkdir -p "$apt"/{lists,archives}/partial
    : >"$apt/status"
    printf 'deb [signed-by=%s] %s %s-backports main\n' \
        "$KEYRING" "$(mirror)" "$SUITE" >"$apt/sources.list"
    cat >"$apt/apt.conf" <<CONF
Dir::State "$apt";
Dir::State::lists "$apt/lists";
Dir::State::status "$apt/status";
Dir::Cache "$apt";
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
APT::Architecture "amd64";
APT::Sandbox::User "root";
CONF
    APT_CONFIG=$apt/apt.conf apt-get update -qq
}

# download PACKAGE...: unpacks packages of backports into $VM/download/PACKAGE.
download() {
    local package
    for package in "$@"; do
        mkdir -p "$VM/download/$package"
        (
            cd "$VM/download/$package"
            APT_CONFIG=$VM/apt/apt.conf apt-get download -qq "$package"
            dpkg-deb -x ./*.deb .
            rm ./*.deb
        )
    done
}

fetch_kernel_and_qemu() {
    rm -rf "$VM/download" "$VM/qemu"

    local kernel
    kernel=$(APT_CONFIG=$VM/apt/apt.conf apt-cache depends linux-image-cloud-amd64 |
        awk '/Depends: linux-image/ { print $2 }')
    [ -n "$kernel" ] || die "$SUITE-backports has no linux-image-cloud-amd64"
    download "$kernel"
    mv "$VM/download/$kernel" "$VM/download/kernel"
    cp "$VM"/download/kernel/boot/vmlinuz-* "$VM/vmlinuz"

    host_qemu_is_new_enough && return 0
    local package packages=(qemu-system-x86 qemu-system-common qemu-system-data seabios)
    download "${packages[@]}"
    mkdir -p "$VM/qemu"
    for package in "${packages[@]}"; do
        cp -a "$VM/download/$package/." "$VM/qemu/"
    done
    local missing
    missing=$(ldd "$VM/qemu/usr/bin/qemu-system-x86_64" | awk '/not found/ { print $1 }')
    [ -z "$missing" ] || die "QEMU from backports lacks libraries here:" "$missing"
}

host_qemu_is_new_enough() {
    local major
    major=$(qemu-system-x86_64 --version | sed -n '1s/.*version \([0-9]*\).*/\1/p')
    [ "${major:-0}" -ge 9 ]
}

build_root() {
    local root=$VM/rootfs include
    include=$(IFS=,; printf '%s' "${GUEST_PACKAGES[*]}")
    rm -rf "$root"
    debootstrap --variant=minbase --arch=amd64 --keyring="$KEYRING" --include="$include" \
        "$SUITE" "$root" "$(mirror)" >"$VM/debootstrap.log" 2>&1 ||
        die "debootstrap failed: $(tail -n 5 "$VM/debootstrap.log")"
    rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*

    cp -a "$VM/download/kernel/lib/modules/." "$root/lib/modules/"
    chroot "$root" depmod "$(basename "$root"/lib/modules/*)"
    mkdir -p "$root/newroot"

    chroot "$root" useradd --create-home --uid 1000 --shell /bin/bash dev
    printf 'dev:100000:65536\n' >"$root/etc/subuid"
    printf 'dev:100000:65536\n' >"$root/etc/subgid"
    # A user manager from boot on, as on a machine where somebody is logged in.
    mkdir -p "$root/var/lib/systemd/linger"
    : >"$root/var/lib/systemd/linger/dev"
    local unit generator
    for unit in "${MASKED_UNITS[@]}"; do
        ln -sf /dev/null "$root/etc/systemd/system/$unit"
    done
    # Nothing is generated here: no fstab, no partitions, no init scripts.
    mkdir -p "$root/etc/systemd/system-generators"
    for generator in "$root"/lib/systemd/system-generators/*; do
        ln -sf /dev/null "$root/etc/systemd/system-generators/$(basename "$generator")"
    done
    printf 'vm\n' >"$root/etc/hostname"
    printf '127.0.0.1 localhost vm\n::1 localhost\n' >"$root/etc/hosts"
}

install_guest_files() {
    local root=$VM/rootfs file
    for file in stage1 stage2 run-job; do
        install -D -m 755 "$HERE/guest/$file" "$root/usr/lib/cofferdam-vm/$file"
    done
    for file in in-mode run-modes; do
        install -D -m 755 "$HERE/guest/$file" "$root/usr/local/bin/$file"
    done
    for file in cofferdam-vm.target cofferdam-vm.service; do
        install -D -m 644 "$HERE/guest/$file" "$root/etc/systemd/system/$file"
    done
}

main
