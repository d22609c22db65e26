// The messages between bakeoff and its agent on another host: a JSON object per line, on the agent's standard streams.
import type { PhysicalCore } from '../machine/processors.ts';
import type { Run } from '../machine/locks.ts';
import type { MachineReading } from '../machine/usage.ts';
import type { Environment } from '../result/result.ts';
import type { LogAlarms } from '../servers/lifecycle.ts';
import type { ServerName, ServerSpec } from '../scenario/model.ts';
import type { RunningServer, StartedServer, StartOptions } from '../servers/index.ts';
import type { ServerSample } from '../store/points.ts';

/** `quota` is null without a quota. */
export interface HostFacts {
  /** The address that the ssh connection came to. */
  address: string;
  processors: { cores: readonly PhysicalCore[]; quota: number | null };
  /** As Node names it: x64, arm64. */
  architecture: string;
  environment: Environment;
  /** The hard limit of open files of a process. */
  files: number;
}

/** A user's file or link, with its path in the sent folder. */
export type SentFile =
  { path: string; mode: number; base64: string } | { path: string; link: string };

/** The agent's calls by name, with parameters and answers. */
export interface Calls {
  facts: { given: null; answer: HostFacts };
  /** Writes files below a new folder whose path nobody can guess. `open`: other users may enter it. */
  keep: { given: { files: readonly SentFile[]; open: boolean }; answer: string };
  /** Finds servers, or installs them. */
  tools: {
    given: { names: readonly ServerName[]; mayInstall: boolean };
    answer: { binaries: Partial<Record<ServerName, string>>; versions: Record<string, string> };
  };
  /** Keeps other runs from measuring on the host until the agent ends. */
  alone: { given: Run; answer: void };
  start: {
    given: { spec: ServerSpec; options: Omit<StartOptions, 'signal' | 'folder' | 'address'> };
    answer: ServerThere;
  };
  stop: { given: { server: number }; answer: void };
  /** Starts sampling a server's use. */
  watch: { given: { server: number }; answer: void };
  /** Ends that and returns the samples, by the agent's monotonic clock. */
  watched: { given: { server: number }; answer: SampleThere[] };
  alarms: { given: { server: number }; answer: LogAlarms };
  clocks: { given: null; answer: { monotonicMs: number; wallMs: number } };
  /** Opens an echo for a single connection, to measure the link. Returns its port. */
  echo: { given: null; answer: number };
  /** Runs k6 to its end. `k6` is its id. */
  k6: { given: K6There; answer: K6Ended };
  endK6: { given: { k6: number; graceMs: number }; answer: void };
}

/** A start of k6 in `folder`, made by `keep` and removed afterwards. */
export interface K6There {
  k6: number;
  binary: string;
  args: readonly string[];
  env: Readonly<Record<string, string>>;
  folder: string;
}

/** Exit of k6 and the contents of its files; '' for a missing file. */
export interface K6Ended {
  code: number | null;
  signal: string | null;
  console: string;
  log: string;
  record: string;
}

/** A server's use; every 100 ms also that of its cores. */
export interface SampleThere extends ServerSample {
  machine?: MachineReading;
}

/** A server that the agent has started. `id` names it to the agent. */
type ServerThere = Omit<RunningServer, 'died' | 'stop'> &
  Pick<StartedServer, 'pid'> & { id: number };

/** To the agent. */
export type Question = {
  [Name in keyof Calls]: { id: number; name: Name; given: Calls[Name]['given'] };
}[keyof Calls];

/** From the agent: an answer, a server that has ended by itself, output of a k6 script, or a line for the user. */
export type Reply =
  | { id: number; answer?: unknown }
  | { id: number; problem: string; exitCode: 1 | 2 | undefined }
  | { died: number; how: string }
  | { printed: number; text: string }
  | { told: string };

/** The agent's first line. */
export const greeting = 'bakeoff-agent';

/** Printed by the start script if the agent must be sent. */
export const wanted = 'bakeoff-agent-wanted';

/** The agent ends after this silence, because an ssh server does not notice a cut connection. */
export const patienceMs = 30_000;
