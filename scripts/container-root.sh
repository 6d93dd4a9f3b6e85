#!/usr/bin/env bash
# Makes a small root filesystem out of this machine's own programs, for tests that
# need an image where no registry can be reached: container-root.sh FOLDER
# [PROGRAM...]. Of further programs only the libraries are put in.
set -euo pipefail

root=$1
shift
programs=(
    sh bash env ls cat cp mv rm mkdir rmdir ln touch chmod chown stat readlink mkfifo mknod head tail wc
    seq sort cut tr sed grep awk find printf echo true false test id uname date sleep timeout yes dd df
    cksum tee kill ps setsid stty tty sync expr dirname basename tar gzip nproc perl python3
)
mkdir -p "$root"/{usr/bin,usr/lib64,usr/sbin,usr/share/empty,etc,tmp,proc,sys,dev,root,opt}
for folder in bin sbin lib lib64; do ln -sfn "usr/$folder" "$root/$folder"; done
chmod 1777 "$root/tmp"

# Debian has /bin and /lib in /usr. Whatever is asked for by a name is put under that name.
copy() {
    local to
    for from in "$@"; do
        to=$from
        case $to in /bin/* | /sbin/* | /lib/* | /lib64/*) to=/usr$to ;; esac
        mkdir -p "$root${to%/*}"
        cp -L "$from" "$root$to"
    done
}

paths=()
for name in "${programs[@]}"; do
    path=/usr/bin/$name
    [ -e "$path" ] || { echo "container-root.sh: $path is missing; run scripts/setup.sh" >&2; exit 1; }
    paths+=("$path")
done
copy "${paths[@]}"

# What perl needs for sockets; python3 for its start, and its modules.
python=/usr/lib/$(basename "$(readlink -f /usr/bin/python3)")
mkdir -p "$root$python" "$root/usr/lib/x86_64-linux-gnu"
cp -r /usr/lib/x86_64-linux-gnu/perl-base "$root/usr/lib/x86_64-linux-gnu/"
tar -C "$python" --exclude=__pycache__ --exclude=test --exclude='config-*' --exclude=idlelib \
    --exclude=ensurepip --exclude=pydoc_data --exclude=tkinter -cf - . | tar -C "$root$python" -xf -

# Scripts among them have no libraries, which ldd says by an error.
libraries=$(ldd "${paths[@]}" "$@" "$python"/lib-dynload/*.so 2>/dev/null | grep -oE '[[:space:]]/[^ :]*' | sort -u || true)
# shellcheck disable=SC2086
copy $libraries
printf 'root:x:0:0:root:/root:/bin/sh\n' >"$root/etc/passwd"
printf 'root:x:0:\n' >"$root/etc/group"
printf '127.0.0.1\tlocalhost\n::1\tlocalhost\n' >"$root/etc/hosts"
