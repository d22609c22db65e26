// Reads requests that other tools have stored: a browser's HAR, targets of vegeta.
import { existsSync, realpathSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { whoMayChange } from '../../../bin/trust.mjs';
import { prefixed, usageError } from '../../errors.ts';
import { readBytes } from '../../files.ts';
import { percent, whole } from '../../format.ts';
import * as form from '../../form.ts';
import { present } from '../../present.ts';
import { mostPages, type LoadRequest } from '../../scenario/model.ts';
import { isMethod, problemOfHeader, textOfFile } from '../../scenario/load/flags.ts';
import { urlParts, type AskedRequests } from '../../scenario/pages.ts';
import { fromCallersFolder } from '../../setup/paths.ts';
import { Counts, LeftOut, safeMethods, statusWithout } from './log.ts';

const mostBytes = 64e6;

/** The engine sets these, or they are a connection's. */
const notSent =
  /^(:.*|host|connection|content-length|transfer-encoding|te|upgrade|keep-alive|proxy-connection|if-.*|range)$/i;

interface HostRequest extends LoadRequest {
  host: string | undefined;
}

/**
 * Reads a HAR 1.2 of a browser's developer tools: the requests to `site`, or to the host with most requests.
 * @param methods as in readLog
 * @throws UserError (exit code 2) for another file, and if nothing is left
 */
export function readHar(
  file: string,
  methods: 'safe' | 'all' = 'safe',
  site?: string,
): AskedRequests {
  const text = textOfFile('--har', file, mostBytes);
  let entries: unknown;
  try {
    entries = (JSON.parse(text) as { log?: { entries?: unknown } } | null)?.log?.entries;
  } catch {
    throw usageError(
      `--har ${file}: it is not JSON: save it again (HAR 1.2, from the developer tools)`,
    );
  }
  if (!Array.isArray(entries) || entries.length === 0)
    throw usageError(
      `--har ${file} has no requests (log.entries): save it again, with the page loaded`,
    );
  const leftOut = new LeftOut();
  const requests: HostRequest[] = [];
  const hosts = new Counts<string>();
  for (const entry of entries) {
    const request = requestOf(entry, methods);
    if ('why' in request) leftOut.add(request.why, request.example);
    else {
      hosts.add(request.host);
      requests.push(request);
    }
  }
  const host = site ?? hosts.mostFrequent();
  const ofHost = requests.filter((request) => request.host === host);
  for (const request of requests)
    if (request.host !== host) leftOut.add(`for other hosts than ${host}`, request.host ?? '');
  const left = leftOut.lines();
  if (ofHost.length === 0)
    throw usageError(`--har ${file}: none of its requests can be used. ${left.join('')}`);
  const summary = `Of the HAR's ${whole(entries.length)} entries, ${percent(ofHost.length / entries.length)} are in the load.`;
  return {
    requests: merged(ofHost, `--har ${file}`),
    ...present({ host }),
    notes: [summary, ...left],
    record: 'HAR',
  };
}

interface Header {
  name: string;
  value: string;
}

const harEntry = form.open({
  request: form.open({
    method: form.text,
    url: form.text,
    headers: form.orElse(form.list(form.open({ name: form.text, value: form.text })), () => []),
    postData: form.orAbsent(
      form.open({ text: form.orAbsent(form.text), encoding: form.orAbsent(form.text) }),
    ),
  }),
  response: form.orAbsent(form.open({ status: form.orAbsent(form.nonNegative) })),
});

/** Returns the request of an entry, or why it is left out. */
function requestOf(
  entry: unknown,
  methods: 'safe' | 'all',
): (HostRequest & { host: string }) | { why: string; example: string } {
  const checked = form.check(harEntry, entry);
  if ('problem' in checked)
    return { why: 'of another form than an entry has', example: checked.problem };
  const { request, response } = checked.value;
  const { method, url, headers, postData } = request;
  const status = response?.status;
  const leave = (why: string) => ({ why, example: `${method} ${url}` });
  if (!/^https?:/.test(url) || !URL.canParse(url)) return leave('for no http(s) URL');
  if (status !== undefined && status < 200) return leave('without an answer');
  if (!isMethod(method)) return leave('no HTTP request');
  if (methods === 'safe' && !safeMethods.includes(method))
    return leave(`${method}, which may change data (--methods all)`);
  const sent = headers.filter(isSent);
  if (sent.some(problemOf)) return leave('with a header that HTTP does not allow');
  const { pathname, search, host } = new URL(url);
  const body = postData?.encoding === 'base64' ? 'bodyBase64' : 'body';
  return {
    method,
    target: pathname + search,
    headers: record(sent),
    ...present({
      [body]: postData?.text || undefined,
      status: status && statusWithout(status),
    }),
    host,
  };
}

const isSent = ({ name }: Header): boolean => !notSent.test(name);

const problemOf = ({ name, value }: Header): string | undefined =>
  problemOfHeader(name, value, 'http/1.1');

const record = (headers: readonly Header[]): Record<string, string> =>
  Object.fromEntries(headers.map(({ name, value }) => [name, value]));

/**
 * Returns each different request once, with its number as weight. Throws UserError (exit code 2), which begins with `what`, if there are
 * too many.
 */
function merged(requests: readonly HostRequest[], what: string): LoadRequest[] {
  const all = new Map<string, LoadRequest & { weight: number }>();
  for (const { host: _, ...request } of requests) {
    const key = JSON.stringify(request);
    const known = all.get(key);
    if (known === undefined) all.set(key, { ...request, weight: 1 });
    else known.weight++;
    if (all.size > mostPages)
      throw usageError(`${what} has more than ${mostPages} different requests: take a part of it`);
  }
  return [...all.values()];
}

/** Returns whether a file is in a folder or below it. Links are followed; a missing file is not below. */
function isBelow(file: string, folder: string): boolean {
  return existsSync(file) && realpathSync(file).startsWith(`${realpathSync(folder)}/`);
}

/**
 * Reads targets of vegeta, in its text format or in JSON.
 * @throws UserError (exit code 2) that names the line
 */
export function readTargets(file: string): AskedRequests {
  const text = textOfFile('--targets', file, mostBytes);
  const targetsFile = fromCallersFolder(file);
  // Targets that others may change must not send root's files to a server. Other targets may name files that not every user may read, but
  // only next to them or below.
  const stats = statSync(targetsFile);
  const isAnothers = stats.isFile() ? whoMayChange(targetsFile) !== undefined : stats.uid !== 0;
  const folder = dirname(targetsFile);
  const limits = (body: string): Parameters<typeof readBytes>[2] => {
    if (process.geteuid?.() !== 0) return {};
    return isAnothers || !isBelow(body, folder) ? { forAll: true } : { below: folder };
  };
  const requests: HostRequest[] = [];
  let address: string | undefined;
  const add = (method: string, url: string, where: string, more: Partial<LoadRequest> = {}) => {
    const { scheme, host, port, path } = urlParts(url, where);
    const origin = `${scheme}://${host ?? `localhost:${port ?? ''}`}`;
    address ??= origin;
    if (origin !== address)
      throw usageError(
        `${where}: ${origin} is another server than ${address}: all targets have to be one server's`,
      );
    if (!isMethod(method))
      throw usageError(`${where}: "${method}" has to be a method such as GET or POST`);
    const headers: Record<string, string> = { ...more.headers };
    const target: HostRequest & { headers: typeof headers } = {
      method,
      target: path,
      ...more,
      headers,
      host,
    };
    requests.push(target);
    return target;
  };
  // Headers and a body belong to it.
  let open: ReturnType<typeof add> | undefined;
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const [line, where] = [raw.trim(), `--targets ${file}, line ${index + 1}`];
    const [, method = '', url = ''] = /^(\S+)\s+(https?:\/\/\S+)$/.exec(line) ?? [];
    const [, name = '', value = ''] = /^([^:\s]+):(.*)$/s.exec(line) ?? [];
    if (line.startsWith('#')) continue;
    if (line === '') open = undefined;
    else if (line.startsWith('{')) add(...jsonTarget(line, where));
    else if (url !== '') open = add(method, url, where);
    else if (open !== undefined && line.startsWith('@')) {
      const body = fromCallersFolder(line.slice(1));
      const before = `${where}: the body ${line.slice(1)}: `;
      open.bodyBase64 = prefixed(() => readBytes(body, mostBytes, limits(body)), before).toString(
        'base64',
      );
    } else if (open !== undefined && name !== '') {
      const header = { name, value: value.trim() };
      if (!isSent(header) && !/^host$/i.test(name)) continue;
      requireRight([header], where);
      open.headers[name] = header.value;
    } else
      throw usageError(
        `${where}: write a method and a URL, such as GET http://localhost/, a header, or @ and a file`,
      );
  }
  const [first] = requests;
  if (first === undefined)
    throw usageError(`--targets ${file} has no targets: write one such as GET http://localhost/`);
  return {
    requests: merged(requests, `--targets ${file}`),
    ...present({ host: first.host }),
    notes: [],
  };
}

function requireRight(headers: readonly Header[], where: string): void {
  const problem = headers.map(problemOf).find((text) => text !== undefined);
  if (problem !== undefined) throw usageError(`${where}: ${problem}`);
}

function jsonTarget(line: string, where: string): [string, string, string, Partial<LoadRequest>] {
  let target: unknown;
  try {
    target = JSON.parse(line);
  } catch {
    throw usageError(`${where}: it is not JSON`);
  }
  const { method = 'GET', url, body, header = {} } = form.isObject(target) ? target : {};
  if (typeof url !== 'string' || typeof method !== 'string' || !form.isObject(header))
    throw usageError(`${where}: write an object with method, url, body and header`);
  const headers = Object.entries(header).map(([name, values]) => ({
    name,
    value: [values].flat().join(', '),
  }));
  const sent = headers.filter(isSent);
  requireRight(sent, where);
  const bodyBase64 = typeof body === 'string' && body !== '' ? body : undefined;
  return [method, url, where, { headers: record(sent), ...present({ bodyBase64 }) }];
}
