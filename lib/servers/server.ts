// The types of servers: options of a start, a running server, a config that is ready to run, a kind of server.
import type { Before, ChildOptions, RunAs } from '../process.ts';
import type {
  Overlay,
  LoadProfile,
  LoadRequest,
  Page,
  Protocol,
  ServerName,
} from '../scenario/model.ts';
import type { Address, UpstreamAddress } from './ports.ts';
import type { TreeUsage } from './usage.ts';

/** A server's answer to the load's request before the load. */
export interface Answer {
  status: number;
  /** Length of the body as sent; for several pages their mean by weight, with its standard deviation. */
  bytes: number;
  sdBytes?: number;
  /** Several requests with the server's status, where a log says another one. */
  requests?: readonly LoadRequest[];
  /** The answers to several requests, in their order. */
  each?: readonly Pick<Answer, 'status' | 'encoding' | 'bytes' | 'hash'>[];
  /** How many have another status, and which, to follow "answers". */
  otherStatuses?: string;
  /** Hash of the body; for several pages, of the first page. */
  hash: string;
  /** The headers Content-Encoding, Content-Type and Location; '' without. */
  encoding: string;
  type: string;
  location: string;
}

/** A StartedServer, a RemoteServer, or one at an address, which bakeoff does not start: a WatchedServer if its control group is known. */
export interface RunningServer {
  name: string;
  version: string;
  /** Such as http://127.0.0.1:18080, without a slash at the end. */
  origin: string;
  workers: number;
  /** Changes to a user's own config, a line each: "listen 80 → 127.0.0.1:40123". */
  redirections: readonly string[];
  upstreams: readonly UpstreamAddress[];
  /** Code in its config answers requests, and may get faster with them. */
  runsCode: boolean;
  answer: Answer;
  /** bakeoff does not start it. */
  atAddress?: true;
  /** Settles if the process ends before stop(), with a line: signal or code, and the log's last line. */
  died: Promise<string>;
  /** Ends all processes (TERM, then KILL) and returns when they are gone. Never throws; may be called twice. */
  stop(): Promise<void>;
}

/** A server whose processes on this machine are known. */
export interface WatchedServer extends RunningServer {
  /** The ids of the processes that run now. */
  processes(): string[];
  usage(): TreeUsage;
}

export function isWatched(server: RunningServer): server is WatchedServer {
  return 'usage' in server;
}

export interface StartedServer extends WatchedServer {
  pid: number;
  /** From the command's exec to its first good answer, within 1 % or 2 ms; null in an enclosure, where others ask for it. */
  startupMs: number | null;
  logFile: string;
}

export function isStarted(server: RunningServer): server is StartedServer {
  return 'pid' in server;
}

/** The parts of a load that decide how a server starts and how it is asked. */
type ServedLoad = Partial<
  Pick<LoadProfile, 'protocol' | 'connections' | 'method' | 'headers' | 'body' | 'tls'>
>;

export interface StartOptions {
  /** Paths of the servers, for specs without a binary. */
  binaries: Partial<Record<ServerName, string>>;
  folder: string;
  cpus: readonly number[];
  workers: number;
  /** Without `bodyBytes`, any length is right. */
  page: Page;
  /** Default: GET over HTTP/2 if the config has it, otherwise over HTTP/1.1. */
  load?: ServedLoad;
  /** The address to listen at. Default, and always for a command: 127.0.0.1. */
  address?: string;
  port?: number;
  /** For tests: how long a server may take to answer. Default: 10 s; for a command 60 s. */
  readyLimitMs?: number;
  /** The server's side of an enclosure, instead of `address`. */
  enclosure?: ServerSide;
  signal?: AbortSignal;
}

/** A request as the load sends it. */
export interface ReadyCheck extends Pick<StartOptions, 'page'> {
  /** Certificates are not verified. */
  origin: string;
  load: ServedLoad & Pick<LoadProfile, 'protocol'>;
  anyLength?: true | undefined;
  /** Ask for all pages, not only the first. */
  allPages?: true;
  /** Any share of requests that have statuses may be answered with others. */
  acceptsDifferences?: true | undefined;
  /** Name of their source in messages (log). */
  record?: string | undefined;
  /** The server is at an address, where bakeoff does not start it: throw the first error. */
  isThere?: true;
  user?: string | undefined;
  /** The server's names, which errors suggest if the page has no host. */
  hosts?: readonly string[];
  /** See AdoptedConfig. */
  hangsUp?: string | undefined;
}

/** A config or a command, ready to start. */
export interface Prepared {
  about: Pick<
    RunningServer,
    'name' | 'version' | 'workers' | 'redirections' | 'upstreams' | 'runsCode'
  >;
  process: Pick<ChildOptions, 'command' | 'args' | 'user' | 'env' | 'cwd'>;
  /** A user's command, of which nothing is known: it may log each request, listen elsewhere, or go to the background. */
  isCommand: boolean;
  fileLimit: number;
  logFile: string;
  tls: boolean;
  /** The default protocol of a load. */
  protocol: Protocol;
  check: Omit<ReadyCheck, 'origin' | 'page' | 'load'>;
  readyLimitMs: number;
  /** Returns the message for a failed start. @param lines of its log since the start */
  explain?(message: string, lines: readonly string[], hasEnded: boolean): string;
}

/** In an enclosure, where nothing else listens. `enter` (`nsenter … --`) goes before a command. */
export interface ServerSide extends Address {
  enter: readonly Before[];
}

/** Values of the machine and the run for a config. All paths are absolute. The server's log is its standard error. */
export interface Place extends Address {
  workers: number;
  fileLimit: number;
  docroot: string;
  temp: string;
  /** Returns the file with key and certificate, which is made at first use on this machine. */
  certificateFile(): Promise<string>;
}

export interface AdoptPlace extends Omit<Place, 'docroot' | 'workers'> {
  /** The server's user if root starts it; absent: the current user. */
  user?: RunAs | undefined;
  cores: number;
  /** The port of the config that becomes `port`; absent: its only one. */
  listen: number | undefined;
  http3: boolean;
  /** The config in whose http block it runs; absent: it is a whole config. */
  within?: string | undefined;
  /** Backends by name in lower case, such as app:9000, and what stands for each: `to` as it was given. */
  upstreams?: readonly { name: string; to: string; address: string }[];
  /** Lines to add to the blocks that serve the pages with these paths. */
  overlays: readonly Overlay[];
  paths: readonly string[];
  /** Returns a free port of 127.0.0.1; may return the same one twice. */
  nextPort(): Promise<number>;
}

export interface ComposedConfig {
  text: string;
  tls: boolean;
  /** The default protocol of a load. */
  protocol: Protocol;
  args(configFile: string): string[];
}

/** A user's own config, changed to run here. */
export interface AdoptedConfig
  extends
    ComposedConfig,
    Pick<RunningServer, 'workers' | 'redirections' | 'upstreams' | 'runsCode'> {
  hosts: readonly string[];
  /** Says which line closes connections that may be the load's, without an answer. */
  hangsUp?: string;
  /** The working folder of its relative paths; absent: any. */
  workingFolder?: string | undefined;
}

/** The steps that differ by server; startServer does the rest. */
export interface ServerKind {
  compose(names: readonly string[], place: Place, build: Build): Promise<ComposedConfig>;
  /** Changes a user's own config to run beside a running server. Throws UserError if it cannot be used. */
  adopt(file: string, place: AdoptPlace, build: Build): Promise<AdoptedConfig>;
  http2Only?: true;
  /** Arguments that have the server only check its config; absent if it cannot. */
  checkArgs?: readonly string[];
  complaint: RegExp;
  /** Finds the config's line number in such a line. */
  complaintLine?: RegExp;
}

/** A binary's version, and its complete answer (with nginx's modules). */
export interface Build {
  version: string;
  answer: string;
}
