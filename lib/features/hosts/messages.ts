// The messages between bakeoff and its agent on another host: a JSON object per line.
/** A user's file or link, with its path in the sent folder. */
export type SentFile =
  { path: string; mode: number; base64: string } | { path: string; link: string };

/** A start of k6 in `folder`, made by `keep` and removed afterwards. `k6` is its id. */
export interface RemoteK6 {
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

/** Between samples of a server's use. */
export const watchMs = 20;

/** Size of a sample as JSON. */
export const mostSampleBytes = 1000;

/** An answer, a server that has ended by itself, output of a k6 script, or a line for the user. */
export type Reply =
  | { id: number; answer?: unknown }
  | { id: number; problem: string; exitCode?: number | undefined }
  | { died: number; how: string }
  | { printed: number; text: string }
  | { told: string };

/** The agent's first line. */
export const greeting = 'bakeoff-agent';

/** Printed by the start script if the agent must be sent. */
export const wanted = 'bakeoff-agent-wanted';

/** An ssh server does not notice a cut connection, so the agent ends after this silence. */
export const patienceMs = 30_000;
