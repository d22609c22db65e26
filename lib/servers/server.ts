// What the runner sees of a running web server, whichever it is.

/** A started server. It serves on loopback and is pinned to the cores it was given. */
export interface RunningServer {
  name: string;
  version: string;
  pid: number;
  /** e.g. http://127.0.0.1:18080 (no trailing slash). */
  origin: string;
  workers: number;
  /** The composed config as it runs, and the server's own log. */
  configFile: string;
  logFile: string;
  /** One line per request, when it was asked for; the check for readiness is in it too, as the user agent `bakeoff-ready`. */
  accessLogFile?: string;
  /** Sums over all tasks of the process tree since start: CPU seconds, and resident bytes now. */
  usage(): { cpuSeconds: number; rssBytes: number };
  /** Settles when the process ends before stop() was called, with one line that says how (signal, code, last log line). */
  died: Promise<string>;
  /** Ends the process tree (TERM, KILL of the tree after a grace) and returns when it is gone. Never throws; may be called twice. */
  stop(): Promise<void>;
}

export interface StartOptions {
  binary: string;
  /** Folder of this variant and round: composed config, logs and pid file go there. */
  folder: string;
  cpus: readonly number[];
  workers: number;
  page: { path: string; bodyBytes: number };
  /** For tests. Default: a free loopback port. */
  port?: number;
  /** Connections that the load opens, for the limit of open files; default: as many as the config allows. */
  connections?: number;
  /** Log each request. For tests that count: in a measurement it would be measured too. */
  accessLog?: boolean;
  signal?: AbortSignal;
}
