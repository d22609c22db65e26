// A server's log of a round: crashes of workers, and what it calls an alert or an emergency.
import { open } from 'node:fs/promises';
import { printable } from '../errors.ts';
import { lastLines } from '../log-file.ts';
import type { ServerSpec } from '../scenario/model.ts';

/** The first line about a crash of a process, the first alarm of all, and the log's last line; without time and process ids. */
export interface LogAlarms {
  crash?: string;
  first?: string;
  last?: string;
}

/** h2o and nghttpd are one process each, which is gone after a crash; these are their last words, if any. */
const words: Record<ServerSpec['name'], { alarm?: RegExp; crash?: RegExp }> = {
  // Before it reads its config, nginx without root cannot open the log that it was built with; it goes on without.
  nginx: {
    alarm: /\[(?:alert|emerg)\](?! could not open error log file)/,
    crash: /\[alert\].* exited (?:on signal \d+|with fatal code)/,
  },
  h2o: { crash: /^received fatal signal \d+/ },
  nghttpd: { crash: /^terminate called|Assertion .* failed/ },
  command: {},
  address: {},
};

/** A server that complains of each request writes gigabytes, all alike. */
const mostBytes = 64 * 1024 * 1024;

/** Reads a server's log of one round. Never throws. */
export async function alarmsIn(logFile: string, server: ServerSpec['name']): Promise<LogAlarms> {
  const { alarm, crash } = words[server];
  const found: LogAlarms = {};
  const log = await open(logFile).catch(() => undefined);
  try {
    for await (const line of log?.readLines({ end: mostBytes }) ?? []) {
      const isCrash = crash?.test(line) ?? false;
      if (isCrash || alarm?.test(line)) found.first ??= withoutTime(line);
      if (isCrash) return { ...found, crash: withoutTime(line) };
    }
  } catch {
    // What was read before still holds.
  } finally {
    await log?.close();
  }
  const last = (await lastLines(logFile)).at(-1);
  return last === undefined ? found : { ...found, last: withoutTime(last) };
}

/** "2026/11/20 08:15:31 [alert] 7#7: worker process 12 exited on signal 11" is "[alert] worker process exited on signal 11". */
function withoutTime(line: string): string {
  return printable(line)
    .replace(/^\d{4}\/\d\d\/\d\d \d\d:\d\d:\d\d /, '')
    .replace(/ \d+#\d+:(?: \*\d+)?/, '')
    .replace(/(process) \d+/, '$1')
    .slice(0, 300)
    .trim();
}
