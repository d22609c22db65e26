import type { MachineReading } from '../machine/usage.ts';
import type { LogAlarms } from './lifecycle.ts';
import type { RunningServer } from './server.ts';
import type { ServerSample, TreeUsage } from './usage.ts';

/** Every 100 ms with that of its cores. */
export interface RemoteSample extends ServerSample, TreeUsage {
  machine?: MachineReading;
}

/** Only its machine knows its processes and log. */
export interface RemoteServer extends RunningServer {
  alarms(): Promise<LogAlarms>;
  /** The returned function ends it and returns the samples by this machine's monotonic clock. */
  watch(): Promise<() => Promise<RemoteSample[]>>;
}

export function isRemote(server: RunningServer): server is RemoteServer {
  return 'watch' in server;
}
