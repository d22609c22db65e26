// What bakeoff and its agent on another host say to each other: one JSON object a line, on the agent's standard streams.
import type { PhysicalCore } from '../machine/processors.ts';
import type { Run } from '../machine/one-run.ts';
import type { MachineReading } from '../machine/usage.ts';
import type { Environment } from '../result/result.ts';
import type { LogAlarms } from '../servers/lifecycle.ts';
import type { ServerName, ServerSpec } from '../scenario/model.ts';
import type { RunningServer, StartedServer, StartOptions } from '../servers/index.ts';
import type { ServerSample } from '../store/points.ts';

/** What the host is. `quota`: as in Processors, null without one. */
export interface HostFacts {
  /** Its own, that the connection came to. */
  address: string;
  processors: { cores: readonly PhysicalCore[]; quota: number | null };
  /** As Node names it: x64, arm64. */
  architecture: string;
  environment: Environment;
  /** That a process may open: the hard limit. */
  files: number;
}

/** A file of a person's own, below the folder that it is in; a link stays one, and points to what is there. */
export type SentFile =
  { path: string; mode: number; base64: string } | { path: string; link: string };

/** What the agent does, by name: what it is given, and what it answers. */
export interface Calls {
  facts: { given: null; answer: HostFacts };
  /** Writes files below a new folder, whose path nobody can guess; `open`: other users may come to it by that. */
  keep: { given: { files: readonly SentFile[]; open: boolean }; answer: string };
  /** Finds servers, or installs them. */
  tools: {
    given: { names: readonly ServerName[]; mayInstall: boolean };
    answer: { binaries: Partial<Record<ServerName, string>>; versions: Record<string, string> };
  };
  /** Has no other run measure on the host until the agent ends. */
  alone: { given: Run; answer: void };
  start: {
    given: { spec: ServerSpec; options: Omit<StartOptions, 'signal' | 'folder' | 'address'> };
    answer: ServerThere;
  };
  stop: { given: { server: number }; answer: void };
  /** From now on, what the server uses is read often. */
  watch: { given: { server: number }; answer: void };
  /** What was read since, by the agent's own monotonic clock. */
  watched: { given: { server: number }; answer: SampleThere[] };
  alarms: { given: { server: number }; answer: LogAlarms };
  /** The agent's clocks now. */
  clocks: { given: null; answer: { monotonicMs: number; wallMs: number } };
  /** The port of an echo for one connection, which the link is tried with. */
  echo: { given: null; answer: number };
  /** Runs k6 to its end. `k6`: what it is named by until then. */
  k6: { given: K6There; answer: K6Ended };
  endK6: { given: { k6: number; graceMs: number }; answer: void };
}

/** What k6 is started with there. It runs in `folder`, which has been kept, and is gone when it has ended. */
export interface K6There {
  k6: number;
  binary: string;
  args: readonly string[];
  env: Readonly<Record<string, string>>;
  folder: string;
}

/** What it has written; '' where that is not there. */
export interface K6Ended {
  code: number | null;
  signal: string | null;
  console: string;
  log: string;
  record: string;
}

/** What a server uses there, and now and then what the kernel says of its cores. */
export interface SampleThere extends ServerSample {
  machine?: MachineReading;
}

/** A server that the agent has started. `id` names it to the agent. */
export type ServerThere = Omit<RunningServer, 'died' | 'stop'> &
  Pick<StartedServer, 'pid'> & { id: number };

/** To the agent. */
export type Question = {
  [Name in keyof Calls]: { id: number; name: Name; given: Calls[Name]['given'] };
}[keyof Calls];

/** From the agent: what a question came to, that a server has ended by itself, what a k6's script has printed, or a line for the person. */
export type Reply =
  | { id: number; answer?: unknown }
  | { id: number; problem: string; exitCode: 1 | 2 | undefined }
  | { died: number; how: string }
  | { printed: number; text: string }
  | { told: string };

/** The line that an agent begins with. */
export const greeting = 'bakeoff-agent';

/** What an agent's start prints where it has to be sent first. */
export const wanted = 'bakeoff-agent-wanted';

/** Who asks nothing for so long is gone: an ssh server does not see a connection that was cut. */
export const patienceMs = 30_000;
