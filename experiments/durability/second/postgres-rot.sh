#!/bin/sh
# The cell "a flipped bit" of PostgreSQL once more, without Assay: acknowledged rows, kill -9 of all processes, one bit of the
# log flipped where it was written before the last rows, a start, and a count. As root: setpriv --reuid=postgres
# --regid=postgres --clear-groups sh postgres-rot.sh
set -eu
bin=${BIN:-$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -1)}
at=$(mktemp -d)
trap 'kill -INT "$server" 2>/dev/null && wait "$server" || true; rm -rf "$at"' EXIT
export LC_ALL=C PGHOST="$at" PGUSER=assay PGDATABASE=postgres
"$bin/initdb" -D "$at/data" -U assay --auth=trust --data-checksums --no-instructions >/dev/null
# All of its processes at once, each by its id: backends are in no group of the first one's.
stop() { kill -9 "$server" $(ps -o pid= --ppid "$server"); }
start() {
  "$bin/postgres" -D "$at/data" -c listen_addresses= -c dynamic_shared_memory_type=mmap -c unix_socket_directories="$at" >>"$at/log" 2>&1 &
  server=$!
  until psql -Xqtc 'SELECT 1' >/dev/null 2>&1; do sleep 0.1; done
}
start
psql -Xqc 'CREATE TABLE entries (tx bigint)'
# Each row is a transaction of its own; psql ends with an error if one of them is not acknowledged.
insert() { seq "$1" "$2" | sed 's/.*/INSERT INTO entries VALUES (&);/' | psql -Xq -v ON_ERROR_STOP=1; }
insert 1 1000
middle=$(psql -Xqtc 'SELECT file_offset FROM pg_walfile_name_offset(pg_current_wal_insert_lsn())')
insert 1001 2000
acknowledged=2000
stop
sleep 1
log=$(ls "$at"/data/pg_wal/0* | head -1)
byte=$(od -An -tu1 -j "$((middle + 64))" -N 1 "$log" | tr -d ' ')
printf "$(printf '\\%03o' $((byte ^ 1)))" | dd of="$log" bs=1 seek="$((middle + 64))" conv=notrunc status=none
rm -f "$at/data/postmaster.pid"
start
echo "acknowledged $acknowledged, kept $(psql -Xqtc 'SELECT count(*) FROM entries' | tr -d ' ')"
grep -iE 'invalid|incorrect|redo done|checksum' "$at/log" | tail -3 || true
