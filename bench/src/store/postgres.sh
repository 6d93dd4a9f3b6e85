#!/usr/bin/env bash
# A PostgreSQL server for as long as standard input is open. Prints its folder,
# which has the socket, when it is up.
#
# usage: postgres.sh FOLDER-OF-POSTGRESQL'S-PROGRAMS
set -euo pipefail
bin=$1
folder=$(mktemp -d /tmp/cofferdam-bench-postgres-XXXXXX)
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
# Its defaults, and a checkpoint now and then while it is filled.
cat >>data/postgresql.conf <<CONF
listen_addresses = ''
unix_socket_directories = '$folder'
max_wal_size = 4GB
CONF
"$bin/pg_ctl" start -D data -l log -w -s >&2 || {
    cat log >&2
    exit 1
}
echo "$folder"
cat >/dev/null
