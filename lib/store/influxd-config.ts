import { join } from 'node:path';

/**
 * An address that influxd can listen on and nobody connect to: the kernel makes no TCP connection to a multicast group.
 * influxd cannot be told to leave a listener out.
 */
const nowhere = '224.0.0.1:0';

/** The config file of the influxd that bakeoff runs itself. Keys that a version does not know are ignored by it (Debian's 1.6 says reporting-enabled, others reporting-disabled). */
export function influxdConfig(folder: string, address: string): string {
  const path = (name: string): string => JSON.stringify(join(folder, name));
  return `# Written by bakeoff at every start.
reporting-disabled = true
reporting-enabled = false
# RPC, for backups, asks for no password and hands out all data.
bind-address = "${nowhere}"

[meta]
  dir = ${path('meta')}

[data]
  dir = ${path('data')}
  wal-dir = ${path('wal')}
  # On disk, so that a long history of runs costs neither memory nor a slow start.
  index-version = "tsi1"
  query-log-enabled = false

[http]
  bind-address = ${JSON.stringify(address)}
  auth-enabled = true
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
