// A server on another machine, as a round sees it.
import type { MachineReading } from '../machine/usage.ts';
import type { LogAlarms } from './lifecycle.ts';
import type { RunningServer } from './server.ts';
import type { ServerSample, TreeUsage } from './usage.ts';

/** A server's use; every 100 ms also that of its cores. */
export interface RemoteSample extends ServerSample, TreeUsage {
  machine?: MachineReading;
}

/** Its machine alone knows its processes and its log. */
export interface RemoteServer extends RunningServer {
  /** Alarms in the server's log, see alarmsIn. */
  alarms(): Promise<LogAlarms>;
  /** Samples its use. The returned function ends that and returns the samples by this machine's monotonic clock. */
  watch(): Promise<() => Promise<RemoteSample[]>>;
}

export function isRemote(server: RunningServer): server is RemoteServer {
  return 'watch' in server;
}
