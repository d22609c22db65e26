// Values of the load generators' flags, checked. `flag` in a message is as the person wrote it, e.g. `wrk -c`.
import { isUtf8 } from 'node:buffer';
import { UserError } from '../../errors.ts';
import { readBytesSync } from '../../open-file.ts';
import { fromCallersFolder } from '../../setup/paths.ts';

/** Time-out for h2load and weighttp, which have none. Article 002's longest request took 447 s, on a network that was full. */
export const endlessTimeoutSeconds = 600;

/** Throws UserError unless `text` is a whole number above 0. */
export function positiveCount(flag: string, text: string): number {
  const count = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(count) || count < 1) {
    throw new UserError(`${flag} ${text} has to be a whole number above 0`);
  }
  return count;
}

const metric = { k: 1e3, m: 1e6, g: 1e9 };

/** A whole number above 0, also as wrk takes it: 1k, 1M, 1G. Throws UserError for all else. */
export function metricCount(flag: string, text: string): number {
  const [, digits, unit] = /^(\d+)([kmg])$/i.exec(text) ?? [];
  if (digits === undefined || unit === undefined) return positiveCount(flag, text);
  return positiveCount(
    flag,
    String(Number(digits) * metric[unit.toLowerCase() as keyof typeof metric]),
  );
}

/** So many requests/s for so long. Throws UserError where they are none, or more than can be counted. */
export function atRate(
  flag: string,
  rate: number,
  seconds: number,
): { rate: number; requests: number } {
  // Whole nanoseconds: 100/s for .29s are 29, which 100 * .29 is not.
  const requests = Math.floor((rate * Math.round(seconds * 1e9)) / 1e9);
  if (requests >= 1 && Number.isSafeInteger(requests)) return { rate, requests };
  throw new UserError(
    `${flag} ${rate}: for ${seconds} s that is ${requests < 1 ? 'no request at all' : 'more requests than can be counted'}`,
  );
}

/** Throws UserError with fewer requests (-n) than connections (-c), or fewer connections than threads (-t). */
export function requireOneEach(
  tool: string,
  {
    requests = Infinity,
    connections,
    threads = 1,
  }: { requests?: number; connections: number; threads?: number },
): void {
  if (requests < connections)
    throw new UserError(
      `${tool}: -n ${requests} is less than -c ${connections}: every connection needs a request, give at least -n ${connections}`,
    );
  if (connections < threads)
    throw new UserError(
      `${tool}: -c ${connections} is less than -t ${threads}: every thread needs a connection, give at least -c ${threads}`,
    );
}

const secondsPerUnit = { ms: 1e-3, s: 1, m: 60, h: 3600 };

/** Seconds of `10`, `10s`, `2m` or `1h`, and of other whole numbers with one of `units`. Throws UserError for all else, and for 0. */
export function positiveTime(
  flag: string,
  text: string,
  units: readonly (keyof typeof secondsPerUnit)[] = ['s', 'm', 'h'],
): number {
  const [, digits, unit = 's'] = /^(\d+)([a-z]+)?$/.exec(text.toLowerCase()) ?? [];
  const known = units.find((one) => one === unit);
  const count = Number(digits);
  if (known === undefined || !Number.isSafeInteger(count) || count < 1) {
    throw new UserError(
      `${flag} ${text} has to be a time such as 10, ${units.map((one) => `10${one}`).join(', ')}`,
    );
  }
  return known === 'ms' ? count / 1000 : count * secondsPerUnit[known];
}

/** Throws UserError unless it is a method that asks for a resource (RFC 9110, section 9.1). */
export function requestMethod(flag: string, text: string): string {
  if (/^[A-Z]+$/.test(text) && text !== 'CONNECT') return text;
  throw new UserError(`${flag} ${text} has to be a method such as GET or POST`);
}

/** k6 gets it in an environment variable, which may have 128 KiB (MAX_ARG_STRLEN); JSON writes some bytes as six. */
const mostBodyBytes = 16 * 1024;

/** The text of a file that is sent with every request. As textOfFile. */
export function bodyOfFile(flag: string, path: string): string {
  return textOfFile(flag, path, mostBodyBytes);
}

/** The text of a file, its path relative to the folder the person stands in. Throws UserError when it is none, or too long. */
export function textOfFile(flag: string, path: string, mostBytes: number): string {
  let text: Buffer;
  try {
    text = readBytesSync(fromCallersFolder(path), mostBytes);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new UserError(
      `${flag} ${path}: ${code === 'ENOENT' ? 'there is no such file' : message.replace(/^\w+: /, '')}`,
      2,
    );
  }
  if (!isUtf8(text))
    throw new UserError(`${flag} ${path} is not text in UTF-8: only text can be sent here`, 2);
  return text.toString('utf8');
}
