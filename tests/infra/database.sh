#!/bin/sh
# Does with these variables what the entry point of PostgreSQL's own image does.
set -eu
data=/var/lib/postgresql/data
bin=$(echo /usr/lib/postgresql/*/bin)
as_postgres() { setpriv --reuid postgres --regid postgres --clear-groups "$@"; }

chown postgres "$data" /run/postgresql
chmod 700 "$data"
if [ ! -s "$data/PG_VERSION" ]; then
  install -m 600 -o postgres "$POSTGRES_PASSWORD_FILE" /tmp/password
  # shellcheck disable=SC2086  (several options)
  as_postgres "$bin/initdb" -D "$data" -U "$POSTGRES_USER" --pwfile /tmp/password \
    --auth-local trust --auth-host scram-sha-256 $POSTGRES_INITDB_ARGS
  rm /tmp/password
  echo "host all all all scram-sha-256" >> "$data/pg_hba.conf"
  as_postgres "$bin/pg_ctl" -D "$data" -o "-c listen_addresses=''" -w start
  as_postgres "$bin/createdb" -U "$POSTGRES_USER" "$POSTGRES_DB"
  as_postgres "$bin/pg_ctl" -D "$data" -w stop
fi
exec setpriv --reuid postgres --regid postgres --clear-groups \
  "$bin/postgres" -D "$data" -c listen_addresses='*'
