// The figures of articles 001, 002 and 003 against the lines that h2load, weighttp and vegeta printed.
import { expect, test } from 'vitest';
import { loadOf } from '../../lib/scenario/variants.ts';
import { loadScenarios } from '../../lib/scenario/catalogue.ts';
import type {
  Published,
  PublishedDistribution,
  Scenario,
  Variant,
} from '../../lib/scenario/model.ts';
import { type PrintedRun, printedRuns, rounded } from '../fixtures/articles.ts';

const articles = ['001', '002', '003'];
const scenarios = (await loadScenarios()).filter((scenario) =>
  articles.includes(scenario.article?.id ?? ''),
);
const runs = articles.flatMap(printedRuns);

test('every run that an article printed is the data of a variant', () => {
  expect(runs).toHaveLength(11);
  for (const run of runs) {
    const published = variantOf(run).published;
    const one = published?.phases === undefined ? published : published.phases[run.phase - 1];
    expect.soft(rounded(one), run.text).toEqual(rounded(figuresOf(run.text)));
  }
});

test('other variants have no published figures but the two that the sweep repeats', () => {
  const printed = new Set(runs.map((run) => variantOf(run)));
  const rest = scenarios
    .flatMap(({ variants }) => variants)
    .filter((variant) => !printed.has(variant) && variant.published !== undefined);
  const table = scenarioNamed('http1-vs-h2-small-file');
  expect(rest.map(({ name, published }) => [name, published])).toEqual([
    ['nginx-http1', table.variants[0]?.published],
    ['streams-100', table.variants[2]?.published],
  ]);
});

test("every printed run's load is the article's command line", () => {
  for (const run of runs)
    expect.soft(loadOf(scenarioNamed(run.scenario), variantOf(run)).command).toBe(run.command);
});

test("HTTP/2 offers the article's TLS; HTTP/1.1 none", () => {
  for (const scenario of scenarios) {
    for (const variant of scenario.variants) {
      const { protocol, tls } = loadOf(scenario, variant);
      const ciphers = ['ECDHE-RSA-AES128-GCM-SHA256'];
      if (protocol === 'h2') expect(tls).toMatchObject({ maxVersion: 'TLSv1.2', ciphers });
      else expect(tls).toBeUndefined();
      const seen = variant.published?.tls;
      if (seen === undefined) continue;
      expect(ciphers).toContain(seen.cipher);
      expect(tls?.curves).toContain(seen.keyExchange);
    }
  }
});

function scenarioNamed(name: string) {
  return scenarios.find((scenario) => scenario.name === name) as Scenario;
}

function variantOf(run: PrintedRun) {
  return scenarioNamed(run.scenario).variants.find((one) => one.name === run.variant) as Variant;
}

/** What one run printed, in the units of Published. */
function figuresOf(text: string) {
  if (text.startsWith('[')) return histogramOf(text);
  const find = (pattern: RegExp) => pattern.exec(text)?.slice(1) ?? [];
  const [time = '', rps, amount, unit = ''] = find(
    /^finished in (.+), ([\d.]+) req\/s, ([\d.]+) ?(MB|kbytes?)\/s$/m,
  );
  const [requests, errored, timeout = '0'] = find(
    /^requests: (\d+) total, .* (\d+) errored(?:, (\d+) timeout)?$/m,
  );
  const classes = find(/^status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx$/m).map(Number);
  const responses = Object.fromEntries(
    classes.flatMap((count, index) => (count === 0 ? [] : [[`${index + 2}xx`, count]])),
  );
  const [received, headers, body] = [
    ...(/^traffic: (.*)$/m.exec(text)?.[1] ?? '').matchAll(
      /\(?(\d+)\)?(?: bytes)? (?:total|headers|http|data)/g,
    ),
  ].map((match) => Number(match[1]));
  const [saved] = find(/space savings ([\d.]+)%/);
  const [version, cipher, keyExchange] = find(
    /^TLS Protocol: (\S+)\nCipher: (\S+)\nServer Temp Key: ECDH (\S+) /m,
  );
  return JSON.parse(
    JSON.stringify({
      rps: Number(rps),
      transferBytesPerSecond: Number(amount) * (unit === 'MB' ? 1024 ** 2 : 1024),
      seconds: secondsOf(time),
      requests: Number(requests),
      responses,
      successRatio: ((classes[0] ?? NaN) + (classes[1] ?? NaN)) / Number(requests),
      errorsPerMillion: ((Number(errored) + Number(timeout)) / Number(requests)) * 1e6,
      receivedBytes: received,
      headerBytes: headers,
      headerSavingsPercent: saved === undefined ? undefined : Number(saved),
      bodyBytes: body,
      latencyMs: distributionOf(text, 'time for request:'),
      connectMs: distributionOf(text, 'time for connect:'),
      firstByteMs: distributionOf(text, 'time to 1st byte:'),
      perConnectionRps: distributionOf(text, 'req/s'),
      tls: version === undefined ? undefined : { version, cipher, keyExchange },
    }),
  ) as Published;
}

/** `12.09s`, or `1 sec, 293 millisec and 127 microsec`. */
function secondsOf(text: string) {
  const words = /^(\d+) sec, (\d+) millisec and (\d+) microsec$/.exec(text);
  if (words === null) return milliseconds(text) / 1000;
  return words.slice(1).reduce((sum, part, index) => sum + Number(part) / 1000 ** index, 0);
}

function distributionOf(text: string, title: string): PublishedDistribution | undefined {
  const line = text.split('\n').find((one) => one.startsWith(title));
  const times = line?.slice(title.length).match(/[\d.]+(?:us|ms|s|%)?(?=\s|$)/g) ?? [];
  const within = times.splice(4)[0];
  if (within === undefined) return undefined;
  const [min, max, mean, sd] = times.map(milliseconds) as [number, number, number, number];
  return { min, max, mean, sd, withinSdPercent: Number.parseFloat(within) };
}

/** Times in ms; a bare number stays what it is. */
function milliseconds(text: string) {
  const [, digits, unit = ''] = /^([\d.]+)(.*)$/.exec(text) ?? [];
  const factor = { '': 1, us: 1e-3, µs: 1e-3, ms: 1, s: 1e3 }[unit];
  if (factor === undefined)
    throw new Error(`the fixture has a figure with an unknown unit: ${text}`);
  return Number(digits) * factor;
}

function histogramOf(text: string): Published {
  const buckets = [...text.matchAll(/^\[(\S+), +(\S+)\] +(\d+) /gm)].map(
    ([, from = '', to = '', count]) => ({
      fromSeconds: milliseconds(from) / 1000,
      toSeconds: to === '+Inf' ? null : milliseconds(to) / 1000,
      count: Number(count),
    }),
  );
  return { requests: buckets.reduce((sum, bucket) => sum + bucket.count, 0), buckets };
}
