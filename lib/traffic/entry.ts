// A line of an access log: its request, status, host and time, in the formats that servers write.
import { present } from '../present.ts';

/** In bytes. */
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

/** A log_format of nginx: which variable each group of the expression is. */
export interface LineForm {
  pattern: RegExp;
  variables: readonly string[];
}

// [1] host [2] time [3] request line [4] status
const textLine =
  /^(?:([\w.-]+):\d+ )?\S+ \S+ \S.*? \[([^\]]+)\] "((?:[^"\\]|\\.)*)" (\d{3}) (?:\d+|-)/;

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

/** An entry, or why the line has none. */
export function entryOf(line: string, forms: readonly LineForm[]): Entry | string {
  if (line.length >= longestLine) return 'longer than 64 KiB';
  const found = ofForms(line, forms) ?? (line.startsWith('{') ? ofJson(line) : ofText(line));
  if (typeof found === 'string') return found;
  const { method, target, status } = found;
  if (!/^[A-Z]+$/.test(method)) return 'no HTTP request';
  if (method === 'CONNECT' || !target.startsWith('/')) return 'for another server';
  // 444 and 499 are nginx's: no answer was sent, or nobody waited for it.
  if (status < 200 || status === 408 || status === 444 || status === 499)
    return 'without an answer';
  return found;
}

function ofForms(line: string, forms: readonly LineForm[]): Entry | string | undefined {
  for (const { pattern, variables } of forms) {
    const [found, ...values] = pattern.exec(line) ?? [];
    if (found === undefined) continue;
    const entry = ofFields(Object.fromEntries(variables.map((name, at) => [name, values[at]])));
    if (typeof entry !== 'string') return entry;
  }
  return undefined;
}

function ofText(line: string): Entry | string {
  const [, host, time, request = '', status = ''] = textLine.exec(line) ?? [];
  if (status === '') return 'of an unknown form';
  return withRequest(request, { status: Number(status), ...present({ host, time }) });
}

function withRequest(request: string, rest: Omit<Entry, 'method' | 'target'>): Entry | string {
  const [, method, target] = /^(\S+) (\S+) HTTP\/\d(?:\.\d)?$/.exec(request) ?? [];
  return method === undefined || target === undefined
    ? 'no HTTP request'
    : { method, target, ...rest };
}

function ofJson(line: string): Entry | string {
  try {
    return ofFields(JSON.parse(Buffer.from(line, 'latin1').toString()) as Record<string, unknown>);
  } catch {
    return 'of an unknown form';
  }
}

const times = ['msec', 'ts', 'time_iso8601', 'time_local', 'time', 'timestamp', '@timestamp'];

/** Of the fields of an object, or the variables of a log_format. */
function ofFields(log: Record<string, unknown>): Entry | string {
  const inner = log['request'];
  const all = typeof inner === 'object' && inner !== null ? { ...log, ...inner } : log;
  const field = (...names: string[]) =>
    names
      .map((name) => (all as Record<string, unknown>)[name])
      .find((value) => typeof value === 'string' && value !== '') as string | undefined;
  const status = Number((all as Record<string, unknown>)['status']);
  const host = field('host', 'http_host', 'server_name', 'vhost')?.replace(/:\d+$/, '');
  if (!Number.isInteger(status)) return 'of an unknown form';
  const time = times.map((name) => log[name]).find((value) => value !== undefined);
  const rest = { status, ...present({ host, time }) };
  const [method, uri] = [
    field('method', 'request_method'),
    field('request_uri', 'uri', 'url', 'path'),
  ];
  if (method === undefined || uri === undefined) return withRequest(field('request') ?? '', rest);
  const query = uri.includes('?') ? '' : (field('args', 'query_string', 'query') ?? '');
  const target = `${uri}${query === '' || query.startsWith('?') ? query : `?${query}`}`;
  return { method, target: Buffer.from(target).toString('latin1'), ...rest };
}

let lastTime: [text: string, seconds: number] = ['', NaN];

/** Seconds since 1970 of "10/Oct/2025:13:55:36 +0000", of ISO 8601, or of a number of (milli)seconds; NaN for all else. */
export function secondsOf(time: unknown): number {
  const number = typeof time === 'string' && time !== '' ? Number(time) : time;
  if (typeof number === 'number' && !Number.isNaN(number))
    return number > 1e11 ? number / 1000 : number;
  const text = String(time);
  if (text !== lastTime[0]) {
    const [, date, clock] = /^(\d\d\/\w{3}\/\d{4}):(\d\d:\d\d:\d\d [+-]\d{4})$/.exec(text) ?? [];
    lastTime = [
      text,
      Date.parse(date === undefined ? text : `${date.replaceAll('/', ' ')} ${clock}`) / 1000,
    ];
  }
  return lastTime[1];
}

/** As a server may be asked for it: bytes that a log escapes (\xC3), or that are not ASCII, as %C3. */
export function sendable(target: string): string {
  const encoded = (code: number) => `%${code.toString(16).toUpperCase().padStart(2, '0')}`;
  return target
    .replace(/#.*$/, '')
    .replace(/\\x([0-9A-Fa-f]{2})/g, (_, hex: string) => encoded(parseInt(hex, 16)))
    .replace(/[^!-~]/g, (byte) => encoded(byte.charCodeAt(0)));
}
