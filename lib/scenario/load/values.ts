// Values of the load generators' flags, checked. `flag` in a message is as the person wrote it, e.g. `wrk -c`.
import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { UserError } from '../../errors.ts';
import { fromCallersFolder } from '../../setup/paths.ts';

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
  return positiveCount(flag, String(Number(digits) * metric[unit.toLowerCase() as keyof typeof metric]));
}

/** Throws UserError with fewer requests (-n) than connections (-c). */
export function requireRequestEach(tool: string, requests: number, connections: number): void {
  if (requests >= connections) return;
  throw new UserError(`${tool}: -n ${requests} is less than -c ${connections}: every connection needs a request, give at least -n ${connections}`);
}

/** Throws UserError with fewer connections (-c) than threads (-t). */
export function requireConnectionEach(tool: string, connections: number, threads: number): void {
  if (connections >= threads) return;
  throw new UserError(`${tool}: -c ${connections} is less than -t ${threads}: every thread needs a connection, give at least -c ${threads}`);
}

const secondsPerUnit = { ms: 1e-3, s: 1, m: 60, h: 3600 };

/** Seconds of `10`, `10s`, `2m` or `1h`, and of other whole numbers with one of `units`. Throws UserError for all else, and for 0. */
export function positiveTime(flag: string, text: string, units: readonly (keyof typeof secondsPerUnit)[] = ['s', 'm', 'h']): number {
  const [, digits, unit = 's'] = /^(\d+)([a-z]+)?$/.exec(text.toLowerCase()) ?? [];
  const known = units.find((one) => one === unit);
  const count = Number(digits);
  if (known === undefined || !Number.isSafeInteger(count) || count < 1) {
    throw new UserError(`${flag} ${text} has to be a time such as 10, ${units.map((one) => `10${one}`).join(', ')}`);
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

/** The text of a file that is sent with every request, its path relative to the folder the person stands in. Throws UserError when it is none. */
export function bodyOfFile(flag: string, path: string): string {
  let body: Buffer;
  try {
    body = readFileSync(fromCallersFolder(path));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new UserError(`${flag} ${path}: ${code === 'ENOENT' ? 'there is no such file' : message.replace(/^\w+: /, '')}`);
  }
  if (body.length > mostBodyBytes) throw new UserError(`${flag} ${path} has ${body.length} bytes: a body of at most ${mostBodyBytes} can be sent here`);
  if (!isUtf8(body)) throw new UserError(`${flag} ${path} is not text in UTF-8: only text can be sent here`);
  return body.toString('utf8');
}
