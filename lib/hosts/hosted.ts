// A server on another host, as a round sees it.
import type { LogAlarms } from '../servers/lifecycle.ts';
import type { RunningServer } from '../servers/index.ts';
import type { SampleThere } from './messages.ts';

export interface HostedServer extends RunningServer {
  /** Alarms in the server's log, see alarmsIn. */
  alarms(): Promise<LogAlarms>;
  /** Samples its use. The returned function ends that and returns the samples by this machine's monotonic clock. */
  watch(): Promise<() => Promise<SampleThere[]>>;
}

export function isHosted(server: RunningServer): server is HostedServer {
  return 'watch' in server;
}
