import { join } from 'node:path';

/** The config file of the influxd that bakeoff runs itself. Keys that a version does not know are ignored by it (Debian's 1.6 says reporting-enabled, others reporting-disabled). */
export function influxdConfig(folder: string, address: string): string {
  const path = (name: string): string => JSON.stringify(join(folder, name));
  return `# Written by bakeoff at every start.
reporting-disabled = true
reporting-enabled = false
# RPC, for backups.
bind-address = "127.0.0.1:0"

[meta]
  dir = ${path('meta')}

[data]
  dir = ${path('data')}
  wal-dir = ${path('wal')}
  # On disk, so that a long history of runs costs neither memory nor a slow start.
  index-version = "tsi1"
  # For inmem only, if somebody changes the line above: runs are tags, so series grow with the history.
  max-series-per-database = 0
  max-values-per-tag = 0
  query-log-enabled = false

[http]
  bind-address = ${JSON.stringify(address)}
  log-enabled = false
  pprof-enabled = false
  # k6 sends what it has in one request, however large.
  max-body-size = 0

[logging]
  format = "logfmt"
  suppress-logo = true

[monitor]
  store-enabled = false

[continuous_queries]
  enabled = false

[retention]
  enabled = false

[shard-precreation]
  enabled = false

[subscriber]
  enabled = false
`;
}
