#!/bin/sh
# InfluxDB's image runs this once, in a new database: Grafana's user, who may read the bucket and nothing else.
set -eu
influx v1 auth create --org "$DOCKER_INFLUXDB_INIT_ORG" --read-bucket "$DOCKER_INFLUXDB_INIT_BUCKET_ID" \
  --username grafana --password "$(cat /run/secrets/influx-read-password)"
