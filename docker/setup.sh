#!/bin/sh
# Makes what docker/compose.yaml needs: the folder of the results, and passwords in docker/.env, which git does not see.
# Run again, it adds what is missing and changes nothing, since InfluxDB and Grafana keep their first passwords.
set -eu
cd "$(dirname "$0")"
mkdir -p ../results
umask 077
touch .env
add() { grep -q "^$1=" .env || echo "$1=$2" >> .env; }
for name in INFLUX_PASSWORD INFLUX_TOKEN INFLUX_READ_PASSWORD GRAFANA_PASSWORD; do
  add "$name" "$(openssl rand -hex 24)"
done
add BAKEOFF_USER "$(id -u):$(id -g)"
