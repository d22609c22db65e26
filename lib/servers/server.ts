// Types: options of a start, a running server, a config ready to run, a kind of server.
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

/** A server's answer to the load's request, before the load. */
export interface Answer {
  status: number;
  /** Length as sent; several pages have a mean by weight, with standard deviation. */
  bytes: number;
  sdBytes?: number;
  /** They have the server's statuses, where a log has others. */
  requests?: readonly LoadRequest[];
  each?: readonly Pick<Answer, 'status' | 'encoding' | 'bytes' | 'hash'>[];
  /** How many, and which; follows "answers". */
  otherStatuses?: string;
  /** Hash of the body, or the first page's. */
  hash: string;
  /** Content-Encoding, Content-Type and Location; '' without. */
  encoding: string;
  type: string;
  location: string;
}

/** Started, remote, or at an address, which is watched if its control group is known. */
export interface RunningServer {
  name: string;
  version: string;
  /** It has no slash at the end. */
  origin: string;
  workers: number;
  /** Changes to a user's own config: "listen 80 → 127.0.0.1:40123". */
  redirections: readonly string[];
  upstreams: readonly UpstreamAddress[];
  /** Code in its config answers requests, and may get faster with them. */
  runsCode: boolean;
  answer: Answer;
  atAddress?: true;
  /** A line if it ends before stop(): signal or code, and the log's last line. */
  died: Promise<string>;
  /** TERM, then KILL, until all are gone. Never throws; may be called twice. */
  stop(): Promise<void>;
}

/** Its processes on this machine are known. */
export interface WatchedServer extends RunningServer {
  processes(): string[];
  usage(): TreeUsage;
}

export function isWatched(server: RunningServer): server is WatchedServer {
  return 'usage' in server;
}

export interface StartedServer extends WatchedServer {
  pid: number;
  /** From exec to the first good answer, within 1 % or 2 ms; null in an enclosure, where others ask. */
  startupMs: number | null;
  logFile: string;
}

export function isStarted(server: RunningServer): server is StartedServer {
  return 'pid' in server;
}

/** Decides how a server starts and is asked. */
type ServedLoad = Partial<
  Pick<LoadProfile, 'protocol' | 'connections' | 'method' | 'headers' | 'body' | 'tls'>
>;

export interface StartOptions {
  /** Specs without a binary take these. */
  binaries: Partial<Record<ServerName, string>>;
  folder: string;
  cpus: readonly number[];
  workers: number;
  /** Any length without `bodyBytes`. */
  page: Page;
  /** Default: GET over HTTP/2 if the config has it, else HTTP/1.1. */
  load?: ServedLoad;
  /** Where it listens. Default, and always for a command: 127.0.0.1. */
  address?: string;
  port?: number;
  /** For tests. Default: 10 s; for a command 60 s. */
  readyLimitMs?: number;
  /** Instead of `address`. */
  enclosure?: ServerSide;
  signal?: AbortSignal;
}

/** A request as the load sends it. */
export interface ReadyCheck extends Pick<StartOptions, 'page'> {
  origin: string;
  load: ServedLoad & Pick<LoadProfile, 'protocol'>;
  anyLength?: true | undefined;
  /** Not only the first. */
  allPages?: true;
  /** Any share may have other statuses than their own. */
  acceptsDifferences?: true | undefined;
  /** Name of their source in messages (log). */
  record?: string | undefined;
  /** A server at an address: throw the first error. */
  isThere?: true;
  user?: string | undefined;
  /** Suggested if the page has no host. */
  hosts?: readonly string[];
  hangsUp?: string | undefined;
}

export interface Prepared {
  about: Pick<
    RunningServer,
    'name' | 'version' | 'workers' | 'redirections' | 'upstreams' | 'runsCode'
  >;
  process: Pick<ChildOptions, 'command' | 'args' | 'user' | 'env' | 'cwd'>;
  /** It may log each request, listen elsewhere, or go to the background. */
  isCommand: boolean;
  fileLimit: number;
  logFile: string;
  tls: boolean;
  /** A load's default. */
  protocol: Protocol;
  check: Omit<ReadyCheck, 'origin' | 'page' | 'load'>;
  readyLimitMs: number;
  /** A failed start's message. @param lines of its log since */
  explain?(message: string, lines: readonly string[], hasEnded: boolean): string;
}

/** Nothing else listens there. `enter` (`nsenter … --`) goes before a command. */
export interface ServerSide extends Address {
  enter: readonly Before[];
}

/** Values for a config. Paths are absolute; the log is standard error. */
export interface Place extends Address {
  workers: number;
  fileLimit: number;
  docroot: string;
  temp: string;
  /** It has key and certificate, made at first use. */
  certificateFile(): Promise<string>;
}

export interface AdoptPlace extends Omit<Place, 'docroot' | 'workers'> {
  /** If root starts it. */
  user?: RunAs | undefined;
  cores: number;
  /** Becomes `port`; absent: the only one. */
  listen: number | undefined;
  http3: boolean;
  /** nginx's config for its http block; absent: it is whole. */
  within?: string | undefined;
  /** Backends by name in lower case, such as app:9000; `to` as given. */
  upstreams?: readonly { name: string; to: string; address: string }[];
  /** They go into blocks that serve these paths. */
  overlays: readonly Overlay[];
  paths: readonly string[];
  /** Free on 127.0.0.1; may come twice. */
  nextPort(): Promise<number>;
}

export interface ComposedConfig {
  text: string;
  tls: boolean;
  /** A load's default. */
  protocol: Protocol;
  args(configFile: string): string[];
}

/** A user's own, changed to run here. */
export interface AdoptedConfig
  extends
    ComposedConfig,
    Pick<RunningServer, 'workers' | 'redirections' | 'upstreams' | 'runsCode'> {
  hosts: readonly string[];
  /** The line that closes connections, maybe the load's, without an answer. */
  hangsUp?: string;
  /** Relative paths begin here; absent: any. */
  workingFolder?: string | undefined;
}

/** What differs by server; startServer does the rest. */
export interface ServerKind {
  compose(names: readonly string[], place: Place, build: Build): Promise<ComposedConfig>;
  /** Changes a config to run beside a running server. @throws UserError */
  adopt(file: string, place: AdoptPlace, build: Build): Promise<AdoptedConfig>;
  http2Only?: true;
  /** They have the server only check its config. */
  checkArgs?: readonly string[];
  complaint: RegExp;
  /** The config's line number in it. */
  complaintLine?: RegExp;
}

/** `answer` is complete, with nginx's modules. */
export interface Build {
  version: string;
  answer: string;
}
