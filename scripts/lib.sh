# shellcheck shell=bash
# What the other scripts share: messages, timing, and "is everything installed".
# Sourced, never run. It must not change the caller's options or directory.

# Root of the checkout, whatever directory the caller was started from.
# shellcheck disable=SC2034 # used by the scripts that source this file
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# The one triple that is supported so far; naming it keeps build scripts and
# proc macros free of the flags that only the product is built with.
TARGET=x86_64-unknown-linux-gnu
# shellcheck disable=SC2034
RELEASE_BINARY=$ROOT/target/$TARGET/release/cofferdam

note() {
    printf '==> %s\n' "$*" >&2
}

die() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

# Milliseconds since the epoch.
now_ms() {
    date +%s%3N
}

# seconds MILLISECONDS: prints them as seconds with one decimal.
seconds() {
    printf '%d.%d' $(($1 / 1000)) $(($1 % 1000 / 100))
}

# Is WHAT (a command's name, or an absolute path) there? An ordinary user's PATH
# may lack the sbin folders, where Debian has mkfs and debootstrap.
is_present() {
    case $1 in
        /*) [ -e "$1" ] ;;
        *) PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null ;;
    esac
}

# need WHAT=PACKAGE...: makes sure that every command or file is there.
# As root on Debian the missing packages are installed; anyone else is told the
# exact line to run. When nothing is missing, apt is not touched at all.
need() {
    local pair missing=()
    for pair in "$@"; do
        is_present "${pair%%=*}" || missing+=("${pair#*=}")
    done
    [ ${#missing[@]} -gt 0 ] || return 0

    local line="apt-get install --no-install-recommends ${missing[*]}"
    if [ "$(id -u)" != 0 ]; then
        die "missing packages; run: sudo $line"
    fi
    command -v apt-get >/dev/null ||
        die "missing packages, and this is not Debian; the Debian line would be: $line"

    note "installing ${missing[*]}"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null

    for pair in "$@"; do
        is_present "${pair%%=*}" ||
            die "${pair%%=*} is still missing after installing ${pair#*=}"
    done
}

# need_cargo: fails with instructions when there is no Rust toolchain, or an older one.
need_cargo() {
    local wanted found
    wanted=$(sed -n 's/^channel = "\(.*\)"/\1/p' "$ROOT/rust-toolchain.toml")
    found=$(cargo --version 2>/dev/null | cut -d ' ' -f 2) || true
    [ "$(printf '%s\n' "$wanted" "$found" | sort -V | head -n 1)" != "$wanted" ] || return 0
    if [ -n "$found" ]; then
        printf 'cargo is %s, and %s is needed.\n' "$found" "$wanted" >&2
    else
        printf 'cargo was not found.\n' >&2
    fi
    cat >&2 <<'TEXT'
Cofferdam is built with the toolchain named in rust-toolchain.toml. Two ways to
get it:

  rustup (any distribution; fetches that exact version by itself):
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y
    . "$HOME/.cargo/env"

  Debian 13 and later package rustup:
    sudo apt-get install rustup gcc libc6-dev
    rustup toolchain install

Debian's own cargo package is older than the version that is needed.
TEXT
    exit 1
}

# need_cargo_tool NAME [+TOOLCHAIN]: installs a cargo subcommand when it is absent.
# Only targets that say so in their help call this; `make test` never does.
need_cargo_tool() {
    local name=$1 toolchain=${2:-}
    command -v "$name" >/dev/null && return 0
    note "installing $name (compiled once, takes some minutes)"
    # The checkout pins a toolchain; tools are built from / to escape that pin
    # unless one was asked for.
    (cd / && cargo ${toolchain:+"$toolchain"} install "$name" --locked) ||
        die "could not install $name; by hand: cargo ${toolchain:+$toolchain }install $name --locked"
}
