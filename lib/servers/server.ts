// A running web server as the runner sees it, and what each kind of server does its own way.
import type { RunAs } from '../process.ts';
import type { LaidLines, LoadProfile, Page, ServerName, TlsOffer } from '../scenario/model.ts';
import type { Address } from './ports.ts';
import type { TreeUsage } from './usage.ts';

export type Protocol = LoadProfile['protocol'];

/** A server's answer to the load's request, when it was tried. */
export interface Answer {
  status: number;
  /** Length of the body as sent; for several pages their mean by weight, and the standard deviation around it. */
  bytes: number;
  sdBytes?: number;
  /** Its headers Content-Encoding, Content-Type and Location; '' without. */
  encoding: string;
  type: string;
  location: string;
}

/** A server that answers: a StartedServer, or one at an address where it ran before. */
export interface RunningServer {
  /** As programOf. */
  name: string;
  /** '' where it is not known. */
  version: string;
  /** e.g. http://127.0.0.1:18080 or https://127.0.0.1:18443 (no trailing slash). */
  origin: string;
  workers: number;
  /** Changes to a person's own config, one line each: "listen 80 → 127.0.0.1:40123". Empty for shipped ones. */
  redirections: readonly string[];
  /** Backends of a person's own config, on this machine. */
  upstreams: readonly UpstreamAddress[];
  answer: Answer;
  /** Settles when the process ends before stop() was called, with one line that says how (signal, code, last log line). */
  died: Promise<string>;
  /** Ends all its processes (TERM, KILL after a grace) and returns when they are gone. Never throws; may be called twice. */
  stop(): Promise<void>;
}

/** A server that bakeoff has started. */
export interface StartedServer extends RunningServer {
  /** Its first process, which leads a process group. */
  pid: number;
  /** The ids of its processes now: of a command those of its process group, and their descendants. */
  processes(): string[];
  /** What these processes have used since start. */
  usage(): TreeUsage;
  logFile: string;
}

export function isStarted(server: RunningServer): server is StartedServer {
  return 'pid' in server;
}

export interface StartOptions {
  /** Paths of the servers, for specs without one. */
  binaries: Partial<Record<ServerName, string>>;
  /** For the composed config and logs of this variant and round. */
  folder: string;
  cpus: readonly number[];
  workers: number;
  /** `bodyBytes` absent: any length is right. */
  page: Omit<Page, 'bodyBytes'> & { bodyBytes?: number };
  /** The load's. Default: HTTP/2 where the config speaks it, or else HTTP/1.1. */
  protocol?: Protocol;
  /** The load's request, where it is not a plain GET. */
  request?: Pick<LoadProfile, 'method' | 'headers' | 'body'> | undefined;
  /** The load's. */
  tls?: TlsOffer | undefined;
  /** Where it listens. Default, and always for a command: 127.0.0.1. */
  address?: string;
  /** For tests. Default: a free port of the address. */
  port?: number;
  /** For tests. How long a command may take until it answers; default: a minute. */
  readyLimitMs?: number;
  /** The server's side of a network of the run's own, instead of `address`. */
  network?: ServerSide;
  /** Connections of the load, for which the limit of open files has to do. */
  connections?: number;
  /** A person's own config may run code even where root starts it. */
  trustConfig?: boolean;
  signal?: AbortSignal;
}

/** A server's address in a network of the run's own, where nothing else listens. `enter` goes before a command: `nsenter …  --`. */
export interface ServerSide extends Address {
  enter: readonly string[];
}

/** Values of the machine and the run, which are laid over a config. All paths are absolute. The server's log is its standard error. */
export interface Place extends Address {
  workers: number;
  /** Limit of open files, soft and hard, of each process of the server. */
  fileLimit: number;
  docroot: string;
  /** An empty folder for its temporary files. */
  temp: string;
  /** The file with key and certificate, made when it is asked for the first time on this machine. */
  certificateFile(): Promise<string>;
}

/** The same for a person's own config. */
export interface AdoptPlace extends Omit<Place, 'docroot' | 'workers'> {
  /** The server's user where root starts it; absent: the current user. */
  user?: RunAs | undefined;
  /** The path at which that user can read a key at the server's start: the file's own, or a copy's. `own`: the config's folder. */
  handOver(file: string, own: string): string;
  /** Server cores: the value of `auto`. */
  cores: number;
  /** The port of the config that becomes `port`. Absent: the only one. */
  listen: number | undefined;
  /** Lines that are laid over it where the pages with these paths are served. */
  laid: readonly LaidLines[];
  paths: readonly string[];
  /** As in StartOptions. */
  trustConfig: boolean;
  /** A free port of 127.0.0.1, for each further address that the config listens on; it may give one twice. */
  nextPort(): Promise<number>;
}

/** A config that is ready to run. */
export interface ComposedConfig {
  text: string;
  tls: boolean;
  /** For requests, unless the load says. */
  protocol: Protocol;
  /** The server's arguments, once the text is in `configFile`. */
  args(configFile: string): string[];
}

/** A port of loopback, or the path of a socket. */
export type UpstreamAddress = { port: number } | { socket: string };

/** A person's own, made to run here. */
export interface AdoptedConfig
  extends ComposedConfig, Pick<RunningServer, 'workers' | 'redirections' | 'upstreams'> {
  /** The user that it names, if it may have that one; absent: the place's user. */
  user?: RunAs | undefined;
  /** The names that it serves at the port, as the config has them. */
  hosts: readonly string[];
  /** The working folder for which its relative paths are meant; absent: any. */
  workingFolder?: string;
}

/** One kind of server. start.ts does the rest for all of them. */
export interface ServerKind {
  /** Throws UserError when a file is missing or cannot be composed. */
  compose(names: readonly string[], place: Place, build: Build): Promise<ComposedConfig>;
  /** Makes a person's own config run here, beside a server that runs already. Throws UserError when it cannot be used. */
  adopt(file: string, place: AdoptPlace, build: Build): Promise<AdoptedConfig>;
  /** It answers nothing else. */
  http2Only?: true;
  /** Go before its arguments to have it check the config and end; absent where it has no such mode. */
  checkArgs?: readonly string[];
  /** Matches an error in its output. */
  complaint: RegExp;
  /** Finds the config's line number in such a line; absent where it names none. */
  complaintLine?: RegExp;
}

/** What a binary said of itself. */
export interface Build {
  version: string;
  answer: string;
}
