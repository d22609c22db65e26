// What a server's log of a round says that the figures do not: crashes of workers, and what it calls an alert or an emergency.
import { open } from 'node:fs/promises';
import { printable } from '../errors.ts';
import { lastLines } from '../log-file.ts';
import type { ServerSpec } from '../scenario/model.ts';

/** Lines without their time and process ids, so that what is said twice is the same. */
export interface LogAlarms {
  /** The first line that says that a process of the server's crashed. */
  crash?: string;
  /** The first one of all. */
  first?: string;
  /** The log's last line, whatever it says. */
  last?: string;
}

/** Of a person's own command nothing is known. h2o and nghttpd are one process each: one that crashes is gone, and these are the words in which it says why, if it does. */
const words: Record<ServerSpec['name'], { alarm?: RegExp; crash?: RegExp }> = {
  // Before it reads its config, nginx without root cannot open the log that it was built with; it goes on without.
  nginx: { alarm: /\[(?:alert|emerg)\](?! could not open error log file)/, crash: /\[alert\].* exited (?:on signal \d+|with fatal code)/ },
  h2o: { crash: /^received fatal signal \d+/ },
  nghttpd: { crash: /^terminate called|Assertion .* failed/ },
  command: {},
  address: {},
};

/** A server that complains of each request writes gigabytes, and says at its begin what there is to say. */
const mostBytes = 64 * 1024 * 1024;

/** Reads a server's log of one round. Never throws: what cannot be read says nothing. */
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
  return printable(line).replace(/^\d{4}\/\d\d\/\d\d \d\d:\d\d:\d\d /, '').replace(/ \d+#\d+:(?: \*\d+)?/, '').replace(/(process) \d+/, '$1')
    .slice(0, 300).trim();
}
