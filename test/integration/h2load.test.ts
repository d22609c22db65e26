// The engine and h2load send the same requests to the same servers over HTTP/2, and their counts must agree.
import { execFileSync } from 'node:child_process';
import { mkdtemp } from 'node:fs/promises';
import { beforeAll, expect, it } from 'vitest';
import { readH2load } from '../../lib/features/calibrate/printed.ts';
import { startK6, compileScript } from '../../lib/runner/k6.ts';
import type { LoadResult } from '../../lib/result/load-result.ts';
import { h2o, nghttpd, nginx } from '../../lib/scenario/index.ts';
import type { ConfiguredServer } from '../../lib/scenario/model.ts';
import { ensureTools } from '../../lib/setup/tools.ts';
import { titleOf, useServers } from '../fixtures/servers.ts';
import path from 'node:path';

interface Load {
  url: string;
  requests: number;
  connections: number;
  streams: number;
}

/** A generator's counts: HTTP/2 bytes, status codes, negotiated TLS, and the time of the load. */
interface Counted {
  total: number;
  headers: number;
  data: number;
  statuses: LoadResult['responses'];
  tls: string | undefined;
  startedMs: number;
  endedMs: number;
}

const test = useServers();
let tools: Record<'k6' | 'h2load', string>;
beforeAll(async () => {
  tools = await ensureTools(['k6', 'h2load']);
}, 300_000);

const specs = [
  nginx(['h2-tuned'], { workers: 2 }),
  nginx(['h2'], { workers: 1 }),
  h2o(['h2'], { workers: 1 }),
  nghttpd(['h2', 'streams-1024'], { workers: 1 }),
];

it.each(specs.map((spec) => [titleOf(spec), spec] as const))('%s', async (_, spec) => {
  const { origin } = await test.start(spec, { workers: 2 });
  await compare(spec, [
    { url: `${origin}/`, requests: 1000, connections: 10, streams: 1 },
    { url: `${origin}/`, requests: 10_003, connections: 7, streams: 33 },
    // The default limits of h2o and nginx are lower.
    { url: `${origin}/`, requests: 6000, connections: 4, streams: 200 },
    { url: `${origin}/not-there`, requests: 500, connections: 5, streams: 5 },
  ]);
});

async function compare(spec: ConfiguredServer, loads: readonly Load[]) {
  const results = await engineResults(loads);
  for (const [index, result] of results.entries()) {
    const load = loads[index] as Load;
    const engine = countedByEngine(result);
    const { savings, ...h2load } = countedByH2load(load);
    const title = `${load.requests} of ${load.url} on ${load.connections} connections, ${load.streams} streams`;
    expect.soft(result.errors.total + result.inFlight, title).toBe(0);
    expect.soft(engine.data, `${title}: data`).toBe(h2load.data);
    expect
      .soft(
        engine.total - engine.headers,
        `${title}: data and all that is neither data nor headers`,
      )
      .toBe(h2load.total - h2load.headers);
    expect.soft(engine.statuses, `${title}: status codes`).toEqual(h2load.statuses);
    expect.soft(engine.tls, `${title}: TLS`).toBe(h2load.tls);
    expectSameHeaders(spec, load, engine, h2load, title);
    // h2load prints the savings instead of the decoded size. The date always has the same length.
    const savedOf = (headers: number) =>
      (100 * (1 - headers / result.bytes.headersDecoded)).toFixed(2);
    expect.soft(savedOf(h2load.headers), `${title}: header savings`).toBe(savings);
  }
}

/**
 * Headers differ only in the date. nginx encodes the date literally in every response, so the blocks are equal except for the
 * encoded length of the date. h2o and nghttpd encode it literally only in a connection's first response and after each change,
 * once per second: 2 bytes plus the date instead of 1 byte.
 */
function expectSameHeaders(
  spec: ConfiguredServer,
  load: Load,
  engine: Counted,
  h2load: Counted,
  title: string,
) {
  const lengths = [engine, h2load].flatMap(datesSeen).map(huffmanBytes);
  const shortest = Math.min(...lengths);
  // Usually 0; depends on the day.
  const spread = Math.max(...lengths) - shortest;
  const more = h2load.headers - engine.headers;
  if (spec.name === 'nginx') {
    expect
      .soft(Math.abs(more), `${title}: header bytes`)
      .toBeLessThanOrEqual(spread * load.requests);
    return;
  }
  const most = ({ startedMs, endedMs }: Counted) =>
    load.connections * (Math.floor((endedMs - startedMs) / 1000) + 1);
  const changes = Math.round(more / (shortest + 1));
  const moreDates = `${title}: changes of the date that h2load saw and the engine did not`;
  expect.soft(changes, moreDates).toBeGreaterThanOrEqual(-most(engine));
  expect.soft(changes, moreDates).toBeLessThanOrEqual(most(h2load));
  const spelledOut = load.connections + most(engine) + most(h2load);
  expect
    .soft(
      Math.abs(more - changes * (shortest + 1)),
      `${title}: header bytes, but for changes of the date`,
    )
    .toBeLessThanOrEqual(spread * spelledOut);
}

/** In the format of headers. A server's clock may still be in the previous second. */
function datesSeen({ startedMs, endedMs }: Counted) {
  const first = Math.floor(startedMs / 1000) - 1;
  return Array.from({ length: Math.floor(endedMs / 1000) - first + 1 }, (_, index) =>
    new Date((first + index) * 1000).toUTCString(),
  );
}

/** The part of HPACK's Huffman code (RFC 7541, appendix B) that dates need. */
function huffmanBytes(date: string) {
  const codes = [/[012aceiost]/, /[ 3-9Abdfghlmnpru]/, /[^,]/, /,/];
  let bits = 0;
  for (const character of date) bits += 5 + codes.findIndex((code) => code.test(character));
  return Math.ceil(bits / 8);
}

async function engineResults(loads: readonly Load[]): Promise<LoadResult[]> {
  const folder = await mkdtemp(path.join(test.folder, 'k6-'));
  const script = path.join(folder, 'script.js');
  await compileScript(script);
  const phases = loads.map((load) => ({
    sides: [{ ...load, protocol: 'h2' as const, tls: { insecureSkipVerify: true } }],
  }));
  const k6 = await startK6({
    binary: tools.k6,
    script,
    folder,
    cpus: [0],
    output: null,
    loadPlan: { scenario: 'h2load', tags: {}, maxDurationSeconds: 100, phases },
  });
  return (await k6.results()).flatMap(({ results }) => results);
}

function countedByEngine({ bytes, responses, tls, startedAt, endedAt }: LoadResult): Counted {
  return {
    total: bytes.received,
    headers: bytes.headers,
    data: bytes.body,
    statuses: responses,
    tls: tls === null ? undefined : `${tls.version} ${tls.cipher} ${tls.keyExchange} h2`,
    startedMs: Date.parse(startedAt),
    endedMs: Date.parse(endedAt),
  };
}

function countedByH2load({
  url,
  requests,
  connections,
  streams,
}: Load): Counted & { savings: string } {
  const startedMs = Date.now();
  const output = execFileSync(
    tools.h2load,
    [...`-t 1 -n ${requests} -c ${connections} -m ${streams}`.split(' '), url],
    { encoding: 'utf8', timeout: 60_000 },
  );
  const endedMs = Date.now();
  const figures = (pattern: RegExp) =>
    (pattern.exec(output) ?? expect.fail(output)).slice(1).map(Number);
  const [total = NaN, headers = NaN, data = NaN] = figures(
    /^traffic: .*\((\d+)\) total, .*\((\d+)\) headers .*\((\d+)\) data$/m,
  );
  const [ok = NaN, redirected = NaN, refused = NaN, failed = NaN] = figures(
    /^status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx$/m,
  );
  const savings = /space savings ([\d.]+)%/.exec(output)?.[1] ?? expect.fail(output);
  return {
    total,
    headers,
    data,
    savings,
    startedMs,
    endedMs,
    statuses: { '2xx': ok, '3xx': redirected, '4xx': refused, '5xx': failed },
    tls: readH2load(output).tls,
  };
}
