// A line of an access log: its request, status, host and time, in the formats that servers write.
import { isObject } from '../form.ts';
import { present } from '../present.ts';

/** In characters. */
export const longestLine = 64 * 1024;

/** A request as a log has it. */
export interface Entry {
  method: string;
  target: string;
  status: number;
  host?: string;
  /** As the log has it. */
  time?: unknown;
}

/** A form of text lines, such as nginx's log_format: the variable of each group. */
export interface LineForm {
  pattern: RegExp;
  variables: readonly string[];
}

/** The combined and the common format, also with a host before it. */
const usual: LineForm = {
  pattern: /^(?:([\w.-]+):\d+ )?\S+ \S+ \S.*? \[([^\]]+)\] "((?:[^"\\]|\\.)*)" (\d{3}) (?:\d+|-)/,
  variables: ['host', 'time', 'request', 'status'],
};

/** A variable is all up to the text after it, in which nginx escapes quotes. */
export function lineForm(format: string): LineForm {
  const variables: string[] = [];
  const pattern = format.replace(
    /\$(?:(\w+)|\{(\w+)\})|[^$]+|\$/g,
    (text: string, name?: string, braced?: string, place = 0) => {
      const variable = name ?? braced;
      if (variable === undefined) return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
      variables.push(variable);
      const end = format[Number(place) + text.length];
      const escaped = end?.replace(/[\\\]^-]/, '\\$&');
      return end === undefined ? '(.*)' : `((?:[^\\\\${escaped}]|\\\\.)*)`;
    },
  );
  return { pattern: new RegExp(`^${pattern}`), variables };
}

/** An entry, or why the line has none. @param forms beside the usual ones */
export function entryOf(line: string, forms: readonly LineForm[]): Entry | string {
  if (line.length >= longestLine) return 'longer than 64 KiB';
  const fields = fieldsOf(line, forms);
  const inner = fields?.['request'];
  const all: Record<string, unknown> = isObject(inner) ? { ...fields, ...inner } : (fields ?? {});
  const field = (...names: string[]) =>
    names.map((name) => all[name]).find((value) => typeof value === 'string' && value !== '') as
      string | undefined;
  const status = Number(all['status']);
  if (!Number.isInteger(status)) return 'of an unknown form';
  const [, word, uri] = /^(\S+) (\S+) HTTP\/\d(?:\.\d)?$/.exec(field('request') ?? '') ?? [];
  const method = field('method', 'request_method') ?? word;
  const path = field('request_uri', 'uri', 'url', 'path') ?? uri;
  if (method === undefined || path === undefined || !/^[A-Z]+$/.test(method))
    return 'no HTTP request';
  if (method === 'CONNECT' || !path.startsWith('/')) return 'for another server';
  // 444 and 499 are nginx's: no answer was sent, or nobody waited for it.
  if (status < 200 || [408, 444, 499].includes(status)) return 'without an answer';
  const query = path.includes('?') ? '' : (field('args', 'query_string', 'query') ?? '');
  return {
    method,
    target: query === '' || query.startsWith('?') ? path + query : `${path}?${query}`,
    status,
    ...present({
      host: field('host', 'http_host', 'server_name', 'vhost')?.replace(/:\d+$/, ''),
      time: all[times.find((name) => all[name] !== undefined) ?? ''],
    }),
  };
}

const times = ['msec', 'ts', 'time_iso8601', 'time_local', 'time', 'timestamp', '@timestamp'];

function fieldsOf(line: string, forms: readonly LineForm[]): Record<string, unknown> | undefined {
  for (const { pattern, variables } of [...forms, usual]) {
    const [found, ...values] = pattern.exec(line) ?? [];
    if (found !== undefined)
      return Object.fromEntries(variables.map((name, at) => [name, values[at]]));
  }
  try {
    const fields: unknown = line.startsWith('{') ? JSON.parse(line) : undefined;
    return isObject(fields) ? fields : undefined;
  } catch {
    return undefined;
  }
}

/** Seconds since 1970 of "10/Oct/2025:13:55:36 +0000", of ISO 8601, or of a number of (milli)seconds; NaN for all else. */
export function secondsOf(time: unknown): number {
  const number = typeof time === 'string' && time !== '' ? Number(time) : time;
  if (typeof number === 'number' && !Number.isNaN(number))
    return number > 1e11 ? number / 1000 : number;
  const text = String(time).replace(/^(\d\d)\/(\w{3})\/(\d{4}):(?=\d\d:)/, '$1 $2 $3 ');
  return Date.parse(text) / 1000;
}

/** As a server may be asked for it: bytes that a log escapes (\xC3), and letters beyond ASCII, as %C3. */
export function sendable(target: string): string {
  return target
    .replace(/#.*$/, '')
    .replace(/\\x([0-9A-Fa-f]{2})/g, '%$1')
    .replace(/[^!-~]/gu, (letter) => encodeURIComponent(letter));
}
