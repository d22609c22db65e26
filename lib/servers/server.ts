// What the runner sees of a running web server, whichever it is, and what each kind of server does its own way.
import type { RunAs } from '../process.ts';
import type { LaidLines, LoadProfile, Page, ServerName, TlsOffer } from '../scenario/model.ts';
import type { Address } from './ports.ts';
import type { TreeUsage } from './usage.ts';

export type Protocol = LoadProfile['protocol'];

/** What a server answered to the request that the load makes, when it was tried. */
export interface Answer {
  status: number;
  /** Of the body, as it was sent; where several pages were asked for, their mean by weight, and the standard deviation around it. */
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
  /** What of a person's own config runs otherwise than it says, one line each: "listen 80 → 127.0.0.1:40123". Empty for shipped ones. */
  redirections: readonly string[];
  /** Where a person's own config passes requests on to, on this machine; empty where it passes none on. */
  upstreams: readonly UpstreamAddress[];
  answer: Answer;
  /** Settles when the process ends before stop() was called, with one line that says how (signal, code, last log line). */
  died: Promise<string>;
  /** Ends all its processes (TERM, KILL after a grace) and returns when they are gone. Never throws; may be called twice. */
  stop(): Promise<void>;
}

/** One that bakeoff has started. It serves on loopback, on the address that it was given, or in a network of the run's own, and is pinned to the cores it was given. */
export interface StartedServer extends RunningServer {
  /** Its first process, which leads a process group. */
  pid: number;
  /** The ids of its processes now: of a command those of its process group, and their descendants. */
  processes(): string[];
  /** Of these processes, since start. */
  usage(): TreeUsage;
  logFile: string;
}

export function isStarted(server: RunningServer): server is StartedServer {
  return 'pid' in server;
}

export interface StartOptions {
  /** Where the servers are that are not the spec's own. */
  binaries: Partial<Record<ServerName, string>>;
  /** Folder of this variant and round: composed config and logs go there. */
  folder: string;
  cpus: readonly number[];
  workers: number;
  /** `bodyBytes` absent: any length is right. */
  page: Omit<Page, 'bodyBytes'> & { bodyBytes?: number };
  /** The load's: the page has to be served over it. Default: HTTP/2 where the config speaks it, or else HTTP/1.1. */
  protocol?: Protocol;
  /** The load's: what it asks in other words than a plain GET. */
  request?: Pick<LoadProfile, 'method' | 'headers' | 'body'> | undefined;
  /** What the load's client offers: the server has to take it. */
  tls?: TlsOffer | undefined;
  /** Of this machine, where it listens. Default: 127.0.0.1; a command listens there alone. */
  address?: string;
  /** For tests. Default: a free port of the address. */
  port?: number;
  /** For tests. How long a command may take until it answers; default: a minute. */
  readyLimitMs?: number;
  /** The server's side of a network of the run's own, whose address holds then. Default: the machine's. */
  network?: ServerSide;
  /** Connections that the load opens: a limit of open files that is too low for them is refused. */
  connections?: number;
  /** A person's own config may run code of its own even where root starts it. */
  trustConfig?: boolean;
  signal?: AbortSignal;
}

/** Where a server stands in a network of the run's own: its address as the client reaches it. Nothing else listens there. */
export interface ServerSide extends Address {
  /** What is put before a command to start it there: `nsenter …  --`. */
  enter: readonly string[];
}

/** What only the machine and the run can say, which is laid over a config. The address is 127.0.0.1, another one of the machine's, or the server's in a network of the run's own. All paths are absolute. The server's log is its standard error. */
export interface Place extends Address {
  workers: number;
  /** Of open files, soft and hard, of each process of the server. */
  fileLimit: number;
  docroot: string;
  /** An empty folder for its temporary files. */
  temp: string;
  /** The file with key and certificate, made when it is asked for the first time on this machine. */
  certificateFile(): Promise<string>;
}

/** Where a person's own config is to run. */
export interface AdoptPlace extends Omit<Place, 'docroot' | 'workers'> {
  /** Whom a server that root starts runs as; absent when it is not root that starts it, and it can become nobody else. */
  user?: RunAs | undefined;
  /** The path at which that user can read a key or the like, and only at the server's start: the file's own, or a copy's. `own`: the config's folder. */
  handOver(file: string, own: string): string;
  /** Server cores: what `auto` comes to. */
  cores: number;
  /** Of those that the config listens on: the one that becomes `port`. Absent: the only one. */
  listen: number | undefined;
  /** What is laid over it, where the pages with these paths are served. */
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
  /** Over which the server is asked unless the load says. */
  protocol: Protocol;
  /** The server's arguments, once the text is in `configFile`. */
  args(configFile: string): string[];
}

/** A port of loopback, or the path of a socket. */
export type UpstreamAddress = { port: number } | { socket: string };

/** A person's own, with what of it is different. */
export interface AdoptedConfig extends ComposedConfig, Pick<RunningServer, 'workers' | 'redirections' | 'upstreams'> {
  /** Whom it names to run as, where it may have that one; absent: the place's user. */
  user?: RunAs | undefined;
  /** The names that it serves at the port, as the config has them. */
  hosts: readonly string[];
  /** Where the server has to stand for the relative paths in it to keep their meaning; absent: anywhere. */
  workingFolder?: string;
}

/** One kind of server. What is not here, start.ts does for all of them. */
export interface ServerKind {
  /** Throws UserError when a file is missing or cannot be composed. */
  compose(names: readonly string[], place: Place, build: Build): Promise<ComposedConfig>;
  /**
   * Makes a person's own whole config run here: addresses, logs, pid file and all that would meet a server that runs already
   * are redirected, each in a line; the file itself is not touched. Throws UserError when it cannot be read or used.
   */
  adopt(file: string, place: AdoptPlace, build: Build): Promise<AdoptedConfig>;
  /** It answers nothing else. */
  http2Only?: true;
  /** What is put before its arguments to have it check the config and end; absent where it has no such mode. */
  checkArgs?: readonly string[];
  /** A line of its output that says what is wrong. */
  complaint: RegExp;
  /** Finds the config's line number in such a line. */
  complaintLine: RegExp;
}

/** What a binary said of itself. */
export interface Build { version: string; answer: string }
