// Types of servers: options of a start, a running server, a config that is ready to run.
import type { Before, ChildOptions, RunAs } from '../process.ts';
import type { Overlay, LoadProfile, LoadRequest, Page, Protocol } from '../scenario/model.ts';
import type { ServerName } from '../setup/servers.ts';
import type { Address, UpstreamAddress } from './ports.ts';
import type { TreeUsage } from './usage.ts';

/** A server's answer to the load's request, before the load begins. */
export interface Answer {
  status: number;
  /** The body's length as sent. For several pages it is their mean by weight, and `sdBytes` its standard deviation. */
  bytes: number;
  sdBytes?: number;
  /** For several pages: the requests with the status that the server answers, if the log has another one. */
  requests?: readonly LoadRequest[];
  /** The answers of several pages, in the order of the requests. */
  each?: readonly Pick<Answer, 'status' | 'encoding' | 'bytes' | 'hash'>[];
  /** How many answers have another status than expected, and which; follows the word "answers". */
  otherStatuses?: string;
  /** Hash of the body, or of the first page's body. */
  hash: string;
  /** The headers Content-Encoding, Content-Type and Location; '' if absent. */
  encoding: string;
  type: string;
  location: string;
}

/**
 * A server that bakeoff started here (StartedServer) or on another machine (RemoteServer), or one at an address. The last is a
 * WatchedServer if its control group is known.
 */
export interface RunningServer {
  name: string;
  version: string;
  /** URL such as http://127.0.0.1:18080, without a slash at the end. */
  origin: string;
  workers: number;
  /** Changes to a user's own config, a line each: "listen 80 → 127.0.0.1:40123". */
  redirections: readonly string[];
  upstreams: readonly UpstreamAddress[];
  /** Code in the server's config answers requests. Such code may get faster with the number of requests. */
  runsCode: boolean;
  answer: Answer;
  /** The server runs at an address: bakeoff does not start it. */
  atAddress?: true;
  /** Settles if the server ends before stop(), with a line: signal or code, and the log's last line. */
  died: Promise<string>;
  /** Ends all processes (TERM, then KILL) and returns when they are gone. Never throws; may be called twice. */
  stop(): Promise<void>;
}

/** A server whose processes on this machine are known. */
export interface WatchedServer extends RunningServer {
  /** Returns the ids of the processes that run now. */
  processes(): string[];
  usage(): TreeUsage;
}

export function isWatched(server: RunningServer): server is WatchedServer {
  return 'usage' in server;
}

export interface StartedServer extends WatchedServer {
  pid: number;
  /**
   * Milliseconds from the command's exec to its first good answer, accurate to 1 % or 2 ms; null in an enclosure, where another process
   * asks.
   */
  startupMs: number | null;
  logFile: string;
}

export function isStarted(server: RunningServer): server is StartedServer {
  return 'pid' in server;
}

/** The options of a load that decide how a server starts and how it is asked. */
type ServedLoad = Partial<
  Pick<LoadProfile, 'protocol' | 'connections' | 'method' | 'headers' | 'body' | 'tls'>
>;

export interface StartOptions {
  /** Paths of the servers, for specs without a binary of their own. */
  binaries: Partial<Record<ServerName, string>>;
  folder: string;
  cpus: readonly number[];
  workers: number;
  /** Without `bodyBytes`, any length is right. */
  page: Page;
  /** Default: GET over HTTP/2 if the config has it, otherwise over HTTP/1.1. */
  load?: ServedLoad;
  /** The address to listen at. The default, and the only one for a command, is 127.0.0.1. */
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
  /** The server's origin. Its certificate is not verified. */
  origin: string;
  load: ServedLoad & Pick<LoadProfile, 'protocol'>;
  anyLength?: true | undefined;
  /** Asks for all pages, not only the first. */
  allPages?: true;
  /** Any share of the requests with an expected status may be answered with another one. */
  acceptsDifferences?: true | undefined;
  /** Name of their source in messages (log). */
  record?: string | undefined;
  /** The server is at an address, where bakeoff does not start it: the first error is thrown without a retry. */
  isThere?: true;
  user?: string | undefined;
  /** The server's host names, which errors suggest if the page has no host. */
  hosts?: readonly string[];
  /** The same as in AdoptedConfig. */
  hangsUp?: string | undefined;
}

/** A config or a command, ready to start. */
export interface Prepared {
  about: Pick<
    RunningServer,
    'name' | 'version' | 'workers' | 'redirections' | 'upstreams' | 'runsCode'
  >;
  process: Pick<ChildOptions, 'command' | 'args' | 'user' | 'env' | 'cwd'>;
  /** A user's command, about which nothing is known: it may log each request, listen elsewhere, or go to the background. */
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

/** The server's side of an enclosure, in which nothing else listens. `enter` (`nsenter … --`) is a command prefix. */
export interface ServerSide extends Address {
  enter: readonly Before[];
}

/** What a config needs to know of the machine and the run. All paths are absolute. The server logs to its standard error. */
export interface Place extends Address {
  workers: number;
  fileLimit: number;
  docroot: string;
  temp: string;
  /** Returns the file with key and certificate, which is made when this machine first needs it. */
  certificateFile(): Promise<string>;
}

export interface AdoptPlace extends Omit<Place, 'docroot' | 'workers'> {
  /** The server's user, if root starts it; absent: the current user. */
  user?: RunAs | undefined;
  cores: number;
  /** The port in the user's config that becomes `port`; absent: its only one. */
  listen: number | undefined;
  http3: boolean;
  /** The nginx config in whose http block the user's file runs; absent: the file is a whole config. */
  within?: string | undefined;
  /**
   * Backends, with their names in lower case, such as app:9000, and the addresses that replace them. `to`: the replacement as the user gave
   * it.
   */
  upstreams?: readonly { name: string; to: string; address: string }[];
  /** Lines to add to the blocks that serve the pages at `paths`. */
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
  /** Says which line closes connections without an answer. The load's connections may be among them. */
  hangsUp?: string;
  /** The working folder for relative paths; absent: any. */
  workingFolder?: string | undefined;
}

/** A binary's version, and its complete answer (which lists nginx's modules). */
export interface Build {
  version: string;
  answer: string;
}
