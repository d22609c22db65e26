// Reads the access log of a server: which requests it had, how often, and with which status.
import { createReadStream, type ReadStream } from 'node:fs';
import { pipeline } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { createGunzip } from 'node:zlib';
import { total } from '../../analysis/statistics.ts';
import { messageOf, printable, usageError, wordIn } from '../../errors.ts';
import { openPlain } from '../../files.ts';
import { counts, percent, whole } from '../../format.ts';
import { isObject } from '../../form.ts';
import { present } from '../../present.ts';
import type { LoadRequest } from '../../scenario/model.ts';
import type { AskedRequests } from '../../scenario/pages.ts';
import { fromCallersFolder } from '../../setup/paths.ts';

export interface LogOptions {
  /** `safe` (default): GET and HEAD only, since other requests may change data. */
  methods?: 'safe' | 'all';
  /** Requests for other hosts are left out. Default: the most frequent host. */
  host?: string | undefined;
  /** Formats of nginx's log_format, beside the usual ones. */
  formats?: readonly string[];
}

/** Rarer requests are put together by path, up to so many paths. */
const mostRequests = 10_000;
/** Different requests that are kept in memory, and their characters; later ones are left out. */
const mostKept = { requests: 1_000_000, characters: 256e6 };

/**
 * Reads access logs: the combined or common format (also with a host before it), or a JSON object per line. `-` is stdin; .gz is gzip.
 * @returns the most frequent requests first, each with its most frequent status; of a log that names hosts, only the requests to the
 * most frequent host
 * @throws UserError (exit code 2) for a file that cannot be read, an unknown format, and if nothing is left
 */
export async function readLog(
  files: readonly string[],
  { methods = 'safe', host: site, formats = [] }: LogOptions = {},
): Promise<AskedRequests> {
  /** Counts by host, and by method, status and target. */
  const hosts = new Map<string, Counts<string>>();
  const leftOut = new LeftOut();
  const forms = formats.map(lineForm);
  let [lines, hosted] = [0, 0];
  const kept = { requests: 0, characters: 0 };
  const add = (line: string) => {
    if (line === '' || line === '\r') return;
    lines++;
    const entry = entryOf(line, forms);
    // Without a request it may be no log but a secret.
    if (typeof entry === 'string')
      return leftOut.add(entry, line.includes('"') ? line : wordIn(line));
    const { method, status, host = '' } = entry;
    if (methods === 'safe' && !safeMethods.includes(method))
      return leftOut.add(`${method}, which may change data (--methods all)`, line);
    if (host !== '') hosted++;
    if (host !== (site ?? host)) return leftOut.add(`for other hosts than ${site}`, line);
    const counted = hosts.get(host) ?? new Counts<string>();
    const key = `${method} ${statusWithout(status)} ${sendable(entry.target)}`;
    if (!counted.has(key)) {
      if (kept.requests >= mostKept.requests || kept.characters >= mostKept.characters)
        return leftOut.add(`after ${whole(kept.requests)} different ones`, line);
      kept.requests++;
      kept.characters += key.length;
    }
    hosts.set(host, counted);
    counted.add(key);
  };
  for (const file of files)
    await eachLine(file, add).catch((error: unknown) => {
      throw usageError(`--log ${file}: ${messageOf(error)}`);
    });
  const [first, ...others] = [...hosts]
    .map(([host, counted]) => ({ host, counted, sum: counted.sum() }))
    .sort((a, b) => b.sum - a.sum);
  for (const { host, sum } of others) leftOut.add(`for other hosts than ${first?.host}`, host, sum);
  const left = leftOut.lines();
  const all = counts(lines, 'line');
  if (first === undefined && site !== undefined && lines > 0 && hosted === 0)
    throw usageError(`--log ${files.join(' ')}: it names no hosts: leave --site out`);
  if (first === undefined)
    throw usageError(
      `--log ${files.join(' ')}: ${lines === 0 ? 'it is empty' : `none of ${all} can be used. ${left.join('')} Give a log in the combined format, or with an object in JSON on each line`}`,
    );
  const host = present({ host: first.host || undefined });
  const { requests, paths, sum } = mixOf(first.counted);
  const rarer = paths === 0 ? '' : `, and rarer ones of ${counts(paths, 'path')}`;
  const summary = `Of the log's ${all}, ${percent(sum / lines)} are in the load: ${counts(requests.length - paths, 'different request')}${rarer}.`;
  return { requests, ...host, notes: [summary, ...left] };
}

/**
 * Returns the requests of access logs, as readLog reads them.
 * @param files URLs such as `new URL('access.log', import.meta.url)`, or paths
 */
export async function fromLog(
  ...files: (string | { readonly href: string })[]
): Promise<readonly LoadRequest[]> {
  const paths = files.map((file) => (typeof file === 'string' ? file : fileURLToPath(file.href)));
  return (await readLog(paths)).requests;
}

/** Calls for each line; of a line that is too long for its first part. */
async function eachLine(file: string, call: (line: string) => void): Promise<void> {
  const input = file === '-' ? process.stdin : streamOf(fromCallersFolder(file));
  // An error of the file ends the loop below, too.
  const text = file.endsWith('.gz') ? pipeline(input, createGunzip(), () => undefined) : input;
  let kept = '';
  for await (const chunk of text.setEncoding('utf8') as AsyncIterable<string>) {
    const lines = (kept + chunk).split('\n');
    kept = (lines.pop() ?? '').slice(0, longestLine);
    lines.forEach(call);
  }
  if (kept !== '') call(kept);
}

function streamOf(file: string): ReadStream {
  return createReadStream('', { fd: openPlain(file) });
}

export class Counts<K> extends Map<K, number> {
  add(key: K, count = 1): void {
    this.set(key, count + (this.get(key) ?? 0));
  }

  sum(): number {
    return total([...this.values()], (count) => count);
  }

  mostFrequent(): K | undefined {
    return [...this].sort(([, a], [, b]) => b - a)[0]?.[0];
  }
}

/** Others may change data. */
export const safeMethods = ['GET', 'HEAD'];

export class LeftOut {
  readonly #reasons = new Map<string, { count: number; line: string }>();

  /** @param line the request, or a line with it in quotes */
  add(why: string, line: string, count = 1): void {
    const known = this.#reasons.get(why);
    if (known === undefined) this.#reasons.set(why, { count, line });
    else known.count += count;
  }

  /** "Left out: 3 POST, such as …"; no line if nothing is left out. */
  lines(): string[] {
    const all = [...this.#reasons].map(
      ([why, { count, line }]) => `${whole(count)} ${why}, such as ${exampleOf(line)}`,
    );
    return all.length === 0 ? [] : [`Left out: ${all.join('; ')}.`];
  }
}

/** Hides possible secrets: query values, and the rest of the line. */
function exampleOf(line: string): string {
  const request = /"([^"]*)"/.exec(line)?.[1] ?? line;
  return JSON.stringify(printable(request.slice(0, 80)).replace(/=[^&\s]*/g, '=…'));
}

/** The status of a request without conditions: the load's have none. */
export const statusWithout = (status: number): number =>
  status === 304 || status === 206 ? 200 : status;

/** @param counted by method, status and target */
function mixOf(counted: ReadonlyMap<string, number>) {
  const statusesOf = new Map<
    string,
    { method: string; target: string; statuses: Counts<number> }
  >();
  for (const [key, count] of counted) {
    const [method = '', status = '', target = ''] = key.split(' ');
    const name = `${method} ${target}`;
    const request = statusesOf.get(name) ?? { method, target, statuses: new Counts<number>() };
    statusesOf.set(name, request);
    request.statuses.add(Number(status), count);
  }
  const weighted = [...statusesOf.values()].map(({ method, target, statuses }) => {
    const status = statuses.mostFrequent() as number;
    return { method, target, status, weight: statuses.sum() };
  });
  const sorted = weighted.sort((a, b) => b.weight - a.weight);
  const requests = sorted.slice(0, mostRequests);
  const paths = new Map<string, (typeof requests)[number]>();
  for (const request of sorted.slice(mostRequests)) {
    const path = `${request.method} ${request.target.replace(/\?.*$/, '')}`;
    const known = paths.get(path);
    if (known !== undefined) known.weight += request.weight;
    else if (paths.size < mostRequests) paths.set(path, { ...request });
  }
  const mix = [...requests, ...paths.values()];
  return { requests: mix, paths: paths.size, sum: total(mix, ({ weight }) => weight) };
}

/** Limit of a line in characters. */
const longestLine = 64 * 1024;

/** A form of text lines, such as nginx's log_format: the variable of each group. */
interface LineForm {
  pattern: RegExp;
  variables: readonly string[];
}

/** The combined and the common format, also with a host before it. */
const usual: LineForm = {
  pattern: /^(?:([\w.-]+):\d+ )?\S+ \S+ \S.*? \[[^\][]+\] "((?:[^"\\]|\\.)*)" (\d{3}) (?:\d+|-)/,
  variables: ['host', 'request', 'status'],
};

/**
 * Returns the pattern of a log format. The value of a variable ends at the text that follows the variable; nginx escapes quotes in it.
 * Variables without text between them cannot be separated, so they get no value.
 */
function lineForm(format: string): LineForm {
  const variables: string[] = [];
  const parts = [...format.matchAll(/((?:\$(?:\w+|\{\w+\}))+)|[^$]+|\$/g)];
  const sources = parts.map(([text, names], place) => {
    if (names === undefined) return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
    const [name = '', ...others] = names.match(/\w+/g) ?? [];
    variables.push(others.length === 0 ? name : '');
    const end = parts[place + 1]?.[0][0];
    if (end === undefined) return '(.*)';
    return end === '\\' ? '([^\\\\]*)' : `((?:[^\\\\${end.replace(/[\]^-]/, '\\$&')}]|\\\\.)*)`;
  });
  return { pattern: new RegExp(`^${sources.join('')}`), variables };
}

/**
 * Returns the request of a log's line, or why the line has none.
 * @param forms beside the usual ones
 */
function entryOf(line: string, forms: readonly LineForm[]) {
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
    }),
  };
}

function fieldsOf(line: string, forms: readonly LineForm[]): Record<string, unknown> | undefined {
  for (const { pattern, variables } of [...forms, usual]) {
    const [match, ...values] = pattern.exec(line) ?? [];
    if (match !== undefined)
      return Object.fromEntries(variables.map((name, at) => [name, values[at]]));
  }
  try {
    const fields: unknown = line.startsWith('{') ? JSON.parse(line) : undefined;
    return isObject(fields) ? fields : undefined;
  } catch {
    return undefined;
  }
}

/** Makes a target valid for a request: bytes that a log escapes (\xC3) and non-ASCII characters become %C3. */
function sendable(target: string): string {
  return wellFormed(target)
    .replace(/#.*$/s, '')
    .replace(/\\x([0-9A-Fa-f]{2})/g, '%$1')
    .replace(/[^!-~]/gu, (letter) => encodeURIComponent(letter));
}

/** Half a surrogate pair, which JSON can escape, is no letter. */
const wellFormed = (text: string): string => text.replace(/\p{Cs}/gu, '\uFFFD');
