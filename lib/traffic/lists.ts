// Requests that other tools have written down: a HAR of a browser, targets of vegeta.
import { readFileSync, statSync } from 'node:fs';
import { UserError, messageOf, usageError } from '../errors.ts';
import { percent, whole } from '../format.ts';
import { isObject } from '../form.ts';
import { present } from '../present.ts';
import type { LoadRequest } from '../scenario/model.ts';
import { textOfFile } from '../scenario/load/flags.ts';
import { urlParts } from '../scenario/pages.ts';
import { fromCallersFolder } from '../setup/paths.ts';
import { leftOutText, safeMethods, statusWithout, type Traffic } from './log.ts';

const mostBytes = 64e6;

/** The engine sets these, or they are a connection's. */
const notSent =
  /^(:.*|host|connection|content-length|transfer-encoding|te|upgrade|keep-alive|proxy-connection|if-.*|range)$/i;

interface Found extends LoadRequest {
  host: string | undefined;
}

/**
 * Reads a HAR 1.2, such as a browser's developer tools save it. Takes the requests of `site`, or of its most frequent host.
 * @param methods as in readLog @throws UserError (exit code 2) for another file, and if nothing is left
 */
export function readHar(file: string, methods: 'safe' | 'all' = 'safe', site?: string): Traffic {
  const text = textOfFile('--har', file, mostBytes);
  let entries: unknown;
  try {
    entries = (JSON.parse(text) as { log?: { entries?: unknown } }).log?.entries;
  } catch (error) {
    throw usageError(`--har ${file}: ${messageOf(error)}`);
  }
  if (!Array.isArray(entries) || entries.length === 0)
    throw usageError(
      `--har ${file} has no requests (log.entries): save it again, with the page loaded`,
    );
  const leftOut = new Map<string, { count: number; line: string }>();
  const leave = (why: string, line: string): [] => {
    leftOut.set(why, { line, ...leftOut.get(why), count: 1 + (leftOut.get(why)?.count ?? 0) });
    return [];
  };
  const found = entries.flatMap((entry: HarEntry): Found[] => {
    const { method = '', url = '', headers = [], postData } = entry.request ?? {};
    if (!/^https?:/.test(url) || !URL.canParse(url)) return leave('for no http(s) URL', url);
    const status = entry.response?.status;
    if (status !== undefined && !(status >= 200))
      return leave('without an answer', `${method} ${url}`);
    if (methods === 'safe' && !safeMethods.includes(method))
      return leave(`${method}, which may change data (--methods all)`, `${method} ${url}`);
    const { pathname, search, host } = new URL(url);
    const body =
      postData?.text === undefined || postData.text === ''
        ? {}
        : postData.encoding === 'base64'
          ? { bodyBase64: postData.text }
          : { body: postData.text };
    return [
      {
        method,
        target: pathname + search,
        headers: sent(headers),
        ...body,
        ...present({ status: status && statusWithout(status) }),
        host,
      },
    ];
  });
  const byHost = new Map<string | undefined, number>();
  for (const { host } of found) byHost.set(host, 1 + (byHost.get(host) ?? 0));
  const [[most] = []] = [...byHost].sort(([, a], [, b]) => b - a);
  const host = site ?? most;
  const own = found.filter(
    (one) => one.host === host || leave(`for other hosts than ${host}`, one.host ?? '').length > 0,
  );
  const left = leftOutText(leftOut);
  if (own.length === 0)
    throw usageError(`--har ${file}: none of its requests can be used. ${left}`);
  return {
    requests: merged(own),
    ...present({ host }),
    said: [
      `Of the HAR's ${whole(entries.length)} entries, ${percent(own.length / entries.length)} are in the load.`,
      ...(left === '' ? [] : [left]),
    ],
  };
}

interface HarEntry {
  request?: {
    method?: string;
    url?: string;
    headers?: readonly { name: string; value: string }[];
    postData?: { text?: string; encoding?: string };
  };
  response?: { status?: number };
}

const sent = (headers: readonly { name: string; value: string }[]): Record<string, string> =>
  Object.fromEntries(
    headers.filter(({ name }) => !notSent.test(name)).map(({ name, value }) => [name, value]),
  );

/** Equal requests are one, with the sum of their weights. */
function merged(found: readonly Found[]): LoadRequest[] {
  const all = new Map<string, LoadRequest & { weight: number }>();
  for (const { host: _, ...request } of found) {
    const key = JSON.stringify(request);
    const known = all.get(key);
    if (known === undefined) all.set(key, { ...request, weight: 1 });
    else known.weight++;
  }
  return [...all.values()];
}

/** Reads targets of vegeta, in its text format or in JSON. @throws UserError (exit code 2) that names the line */
export function readTargets(file: string): Traffic {
  const text = textOfFile('--targets', file, mostBytes);
  let bodies = 0;
  const bodyOf = (name: string, where: string): Pick<LoadRequest, 'bodyBase64'> => {
    const path = fromCallersFolder(name);
    try {
      bodies += statSync(path).size;
      if (bodies > mostBytes) throw usageError(`${where}: the bodies have more than 64 MB in all`);
      return { bodyBase64: readFileSync(path).toString('base64') };
    } catch (error) {
      if (error instanceof UserError) throw error;
      throw usageError(`${where}: the body ${name} cannot be read: ${messageOf(error)}`);
    }
  };
  const found: Found[] = [];
  let address: string | undefined;
  const add = (method: string, url: string, where: string, more: Partial<LoadRequest>) => {
    const { scheme, host, port, path } = urlParts(url, where);
    const own = `${scheme}://${host ?? `localhost:${port ?? ''}`}`;
    address ??= own;
    if (own !== address)
      throw usageError(
        `${where}: ${own} is another server than ${address}: all targets have to be one server's`,
      );
    if (!/^[A-Z]+$/.test(method) || method === 'CONNECT')
      throw usageError(`${where}: "${method}" has to be a method such as GET or POST`);
    found.push({ method, target: path, ...more, host });
  };
  let open:
    | {
        method: string;
        url: string;
        where: string;
        more: Partial<LoadRequest>;
        headers: Record<string, string>;
      }
    | undefined;
  const close = () => {
    if (open !== undefined)
      add(open.method, open.url, open.where, { ...open.more, headers: open.headers });
    open = undefined;
  };
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const [line, where] = [raw.trim(), `--targets ${file}, line ${index + 1}`];
    if (line.startsWith('#')) continue;
    const words = line.split(/\s+/);
    if (line === '') close();
    else if (line.startsWith('{')) addJson(line, where, add);
    else if (open !== undefined && line.startsWith('@')) open.more = bodyOf(line.slice(1), where);
    else if (words.length === 2 && /^https?:\/\//.test(words[1] as string)) {
      close();
      open = { method: words[0] as string, url: words[1] as string, where, more: {}, headers: {} };
    } else if (open !== undefined && /^[^:\s]+:/.test(line)) {
      const [, name = '', value = ''] = /^([^:]+):\s*(.*)$/.exec(line) ?? [];
      if (!notSent.test(name) || /^host$/i.test(name)) open.headers[name] = value;
    } else
      throw usageError(
        `${where}: write a method and a URL, such as GET http://localhost/, a header, or @ and a file`,
      );
  }
  close();
  if (found.length === 0)
    throw usageError(`--targets ${file} has no targets: write one such as GET http://localhost/`);
  const [{ host }] = found as [Found];
  return { requests: merged(found), ...present({ host }), said: [] };
}

function addJson(
  line: string,
  where: string,
  add: (method: string, url: string, where: string, more: Partial<LoadRequest>) => void,
): void {
  let target: unknown;
  try {
    target = JSON.parse(line);
  } catch (error) {
    throw usageError(`${where}: ${messageOf(error)}`);
  }
  if (!isObject(target)) throw usageError(`${where}: write an object with method and url`);
  const { method = 'GET', url, body, header = {}, ...unknown } = target;
  const [more] = Object.keys(unknown);
  if (more !== undefined)
    throw usageError(`${where}: a target has no "${more}": it has method, url, body and header`);
  if (typeof url !== 'string' || typeof method !== 'string' || !isObject(header))
    throw usageError(`${where}: write an object with method and url`);
  const headers = Object.entries(header).map(([name, values]) => ({
    name,
    value: [values].flat().join(', '),
  }));
  add(method, url, where, {
    headers: sent(headers),
    ...(typeof body === 'string' && body !== '' ? { bodyBase64: body } : {}),
  });
}
