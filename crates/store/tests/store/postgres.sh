#!/usr/bin/env bash
# A PostgreSQL server for as long as standard input is open: whichever way the
# tests end, even by a kill, the server ends with them and leaves nothing behind.
# Prints its folder, which has the socket, when it is up. A line of input is an
# order: "again" restarts it the hard way, as a crash would, "stop" and "start"
# do each half of that. It is repeated with "done" when it was carried out.
#
# usage: postgres.sh FOLDER-OF-POSTGRESQL'S-PROGRAMS
set -euo pipefail
bin=$1
folder=$(mktemp -d /tmp/cofferdam-postgres-XXXXXX)
cd "$folder"

finish() {
    "$bin/pg_ctl" stop -D data -m immediate -s >/dev/null 2>&1 || true
    cd /
    rm -rf "$folder"
}
trap finish EXIT

"$bin/initdb" -D data -U store -A trust -E UTF8 --locale=C.UTF-8 --no-sync >log 2>&1 || {
    cat log >&2
    exit 1
}
# Only this folder's owner, and root, get to the socket. Nothing here has to
# outlive the machine, so it is not synced; it does outlive a crash of the server.
cat >>data/postgresql.conf <<CONF
listen_addresses = ''
unix_socket_directories = '$folder'
fsync = off
max_connections = 500
CONF
"$bin/pg_ctl" start -D data -l log -w -s >&2 || {
    cat log >&2
    exit 1
}
echo "$folder"

while read -r order; do
    case $order in
    again) "$bin/pg_ctl" restart -D data -l log -m immediate -w -s >&2 ;;
    stop) "$bin/pg_ctl" stop -D data -m immediate -w -s >&2 ;;
    start) "$bin/pg_ctl" start -D data -l log -w -s >&2 ;;
    esac
    echo "$order done"
done
