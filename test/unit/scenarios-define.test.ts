import { expect, test } from 'vitest';
import {
  baselineName,
  fitVariantLoad,
  networkOf,
  pageOf,
  programOf,
} from '../../lib/scenario/variants.ts';
import {
  ab,
  address,
  command,
  defineScenario,
  h2load,
  h2o,
  nghttpd,
  nginx,
  vegeta,
  wrk,
  type NetworkSpec,
  type Scenario,
  type ServerSpec,
  type Variant,
} from '../../lib/scenario/index.ts';
import article from '../../scenarios/articles/001.ts';

const workers = { workers: 1 };
const first: Variant = { name: 'first', server: nginx(['base'], workers), published: { rps: 1 } };
const second: Variant = { name: 'second', server: h2o(['h2'], workers) };
const third: Variant = { name: 'third', server: nghttpd(['h2'], workers) };
const gone: Variant = { name: 'gone', server: 'nobody has it any more', published: { rps: 2 } };
const good: Scenario = {
  name: 'good',
  title: 'x',
  article: { ...article, id: 'x' },
  knob: 'x',
  load: h2load('-n 100 -c 10 -m 2'),
  page: { docroot: 'nginx', path: '/', bodyBytes: 612 },
  variants: [first, second, third, gone],
};
const page = good.page;
const load = good.load;
const network: NetworkSpec = {
  toServer: { delayMs: 100, queuePackets: 1000 },
  toClient: { delayMs: 0 },
  serverSettings: ['centos-7'],
  clientSettings: [],
};

test('accepts user configs and pages, controls and additional comparisons', () => {
  const userVariant: Variant = {
    name: 'own',
    server: nginx(['/etc/nginx/nginx.conf'], { workers: 'server-cores', asIs: { port: 80 } }),
    page: { path: '/?a=1', host: 'a.example:81', bodyBytes: 1 },
    needsServerCores: 2,
  };
  const mixed: Scenario = {
    ...good,
    variants: [first, second, userVariant],
    control: true,
    sharedCores: true,
    alsoCompare: [{ variant: 'own', against: 'second' }],
  };
  expect(pageOf(mixed, userVariant).path).toBe('/?a=1');
  expect(pageOf(mixed, first)).toBe(page);
  const variants = [first, { ...second, against: null }, { ...userVariant, against: 'second' }];
  const baselines = { ...good, variants };
  const baselineOf = (variant: Variant) => baselineName(baselines, variant);
  expect(variants.map(baselineOf)).toEqual([undefined, undefined, 'second']);
  const post = { method: 'POST', headers: { 'Accept-Encoding': 'gzip' }, body: 'x' };
  const asked = { ...good, load: { ...load, ...post } };
  const anything: Scenario = {
    ...good,
    load: wrk('-c 2'),
    page: { path: '/', bodyBytes: 0, status: 404 },
    variants: [
      { name: 'here', server: command('node server.js', { port: 3000, folder: 'app', tls: true }) },
      { name: 'there', server: address('https://staging.example.com:8443') },
    ],
  };
  for (const scenario of [mixed, baselines, asked, anything])
    expect(defineScenario(scenario)).toBe(scenario);
  expect(anything.variants.map(({ server }) => programOf(server as ServerSpec))).toEqual([
    'node',
    'staging.example.com:8443',
  ]);
});

test('accepts networks of a scenario and of a variant, with extreme values', () => {
  const wide: NetworkSpec = {
    toServer: { delayMs: 60_000, queuePackets: 1, bytesPerSecond: 1, lossShare: 0.999 },
    toClient: { delayMs: 0, lossShare: 0 },
    serverSettings: ['./a.conf', '/b.conf'],
    clientSettings: ['generator'],
  };
  const scenario = { ...good, network, variants: [first, { ...second, network: wide }] };
  expect(defineScenario(scenario)).toBe(scenario);
  expect(scenario.variants.map((variant) => networkOf(scenario, variant))).toEqual([network, wide]);
});

/** Replaces values of a scenario by path, such as { 'variants.1.against': 'x' }; undefined removes the field. */
function changed(changes: Record<string, unknown>, from: object = good) {
  const scenario = structuredClone(from);
  for (const [at, value] of Object.entries(changes)) {
    const keys = at.split('.');
    const last = keys.pop() as string;
    let target = scenario as Record<string, unknown>;
    for (const key of keys) target = (target[key] ??= {}) as Record<string, unknown>;
    if (value === undefined) delete target[last];
    else target[last] = value;
  }
  return scenario as Scenario;
}
const { docroot: _, ...ownPage } = page;
const withServer = (server: ServerSpec): Scenario => ({
  ...good,
  page: ownPage,
  variants: [{ name: 'side', server }],
});
const twice = { count: 2, pauseSeconds: 0 };
const asIs = withServer(nginx(['/a.conf'], { workers: 1, asIs: {} }));
const inNetwork = { ...good, network };

test.each([
  [{ page: ownPage }, 'variant "first" has a page without docroot'],
  [{ 'page.path': '/a b' }, 'page: path "/a b" has to begin with /, and has a blank as %20'],
  [{ 'page.host': 'a/b' }, 'page: host "a/b"'],
  [{ 'page.docroot': '' }, 'page: docroot "": write ./ if it is beside the scenario'],
  [{ 'page.requests': [{ target: '/a' }] }, /page: path "\/" has to be a target of requests$/],
  [{ 'page.requests': [{ target: '/' }, { target: 'a.html' }] }, 'path "a.html" has to begin'],
  [{ 'page.requests': [{ target: '/', method: 'get' }] }, 'page: request /: method "get" has to'],
  [{ alsoCompare: [{ variant: 'third', against: 'nobody' }] }, 'and "nobody" is not there'],
  [{ constructor: 1 }, /^scenario good: there is no field "constructor": there are /],
  [{ name: '2024' }, /^scenario "?2024"?: name "2024" has to have a letter or a - in it/],
  [{ variants: [] }, /^scenario good: has no variants$/],
  [{ variants: [first, first] }, 'two variants are named "first"'],
  [{ variants: [gone] }, 'has published figures only'],
  [{ 'variants.3.published': undefined }, 'is published only, and has no published figures'],
  [{ 'variants.1.against': 'fisrt' }, 'variant "second" is against "fisrt", and "fisrt" is not th'],
  [{ 'variants.1.against': 'gone' }, '"second" is against "gone", and "gone" is published only'],
  [{ 'variants.1.against': 'second' }, 'variant "second" is against itself'],
  [
    { phases: { count: 3, pauseSeconds: 0 }, 'variants.0.published.phases': [{}, {}] },
    'variant "first" has published figures of 2 phases, not of 3',
  ],
  [{ 'variants.0.load': { ...ab('-n 5'), streams: 5 } }, 'variant "first" load: streams 5 need'],
  [{ phases: twice, 'variants.1.network': network }, 'variant "second" has a network'],
  [{ 'variants.0.published.rps': NaN }, /variants\[0\]\.published\.rps NaN has to be /],
  [{ within: { metric: 'p99', ms: 5 }, phases: twice }, /has within, and phases\.count: a search/],
  [{ 'variants.0.server.config': [] }, 'has no config: name files of server-configs/nginx/'],
  [{ 'variants.0.server.workers': 'many' }, /workers "many" has to be .* or 'server-cores'$/],
  [{ load: wrk('-c 2'), variants: [third] }, 'nghttpd for http/1.1, and it speaks HTTP/2 only'],
])('is refused, with the field named: %j', (changes, message) => {
  expect(() => defineScenario(changed(changes))).toThrow(message);
});

test.each([
  [{ protocol: 'spdy' }, 'load.protocol "spdy" has to be'],
  [{ keepAlive: false }, 'load: keepAlive is false, and HTTP/2 and 3 keep their connections'],
  [{ requests: undefined }, 'load: one of requests and durationSeconds has to be set'],
  [{ requests: undefined, durationSeconds: 5, rate: 10 }, 'load: a rate goes with requests'],
  [{ arrivals: 'poisson' }, 'load: arrivals are those of a rate'],
  [{ together: true, rate: 10 }, 'load: together needs several streams, and no rate'],
  [{ window: { connection: 65_534 } }, 'load: window: connection has to be 65535 or more'],
  [{ bucketSeconds: [0.002, 0.001] }, 'load: bucketSeconds have to be ascending'],
  [{ requests: undefined, durationSeconds: 5, secondsHere: 10 }, 'take the place of requests'],
  [{ method: 'CONNECT' }, 'load: method "CONNECT" has to be'],
  [{ headers: { '': 'x' } }, 'load: "" is not a header name'],
  [{ headers: { A: 'x\ny' } }, 'load: the value of A has a line break'],
  [{ headers: { 'content-length': '5' } }, 'content-length is set by the load generator'],
  [{ headers: { Upgrade: 'x' } }, 'load: Upgrade is not allowed in HTTP/2'],
  [{ protocol: 'h2c', tls: {} }, 'load: h2c is HTTP/2 without TLS'],
  [{ tls: { curves: ['prime256v1', 'X448'] } }, 'tls: there is no curve "X448"; there are: X25519'],
  [{ tls: { resume: 1.1 } }, 'load.tls.resume'],
  [{ protocol: 'h3', tls: { resume: 0.9 } }, 'resume is not for h3'],
  [{ tls: { minVersion: 'TLSv1.3', maxVersion: 'TLSv1.2' } }, 'minVersion is above maxVersion'],
])('is refused, with the field named: a load with %j', (changes, message) => {
  const inLoad = Object.entries(changes).map(([name, value]) => [`load.${name}`, value]);
  expect(() => defineScenario(changed(Object.fromEntries(inLoad)))).toThrow(message);
});

test.each([
  [changed({ 'variants.0.server.config': ['a.conf'] }, asIs), 'its config has to be one file'],
  [changed({ 'variants.0.page': page }, asIs), '"side" is asIs: what it serves is in its config'],
  [changed({ network }, asIs), 'variant "side" is your own (asIs or an address)'],
  [withServer(command(' ')), 'has a command that cannot run: the command names no program'],
  [withServer(command('a | b')), /: the command: \| needs a shell: write sh -c '…'$/],
  [changed({ page }, withServer(command('a'))), '"side" serves what is its own'],
  [withServer(address('127.0.0.1:8080')), 'has the address "127.0.0.1:8080": write one such as'],
  [
    withServer(address('http://127.0.0.1', { cgroup: 'a/x' })),
    'group "a/x": write an absolute path',
  ],
  [withServer(address('http://me:hunter2@a.org')), /^(?!.*hunter2).*, an account as a header$/],
])('is refused, with the field named: a server: %#', (scenario, message) => {
  expect(() => defineScenario(scenario)).toThrow(message);
});

test.each([
  [{ 'network.toServer.queuPackets': 1 }, 'network.toServer: there is no field "queuPackets": '],
  [{ 'network.toServer.lossShare': 1 }, /\.lossShare 1 has to be below 1: 0\.01 is 1 %$/],
  [{ 'network.serverSettings': ['a.conf'] }, '"a.conf": write ./a.conf if it is beside'],
  [{ phases: twice }, '"first" has a network, and phases.count is 2'],
])('is refused, with the field named: a network: %j', (changes, message) => {
  expect(() => defineScenario(changed(changes, inNetwork))).toThrow(message);
});

test('variants with equal counts in the article make equal counts here', () => {
  const loads = ['-n 1000 -c 10 -m 10', '-n 1000 -c 10', '-n 3000 -c 10', '-D 10 -c 10'].map(
    (line) => h2load(line),
  );
  const more = [...loads, vegeta('-rate=100 -duration=10s')];
  const variants = [first, ...more.map((load, index) => ({ ...third, name: `${index}`, load }))];
  const counts = (options: object): unknown[] =>
    variants.map((variant) => {
      const fitting = { generatorCores: 1, exact: false, ...options };
      const fitted = fitVariantLoad({ ...good, variants }, variant, fitting);
      return fitted.requests ?? `${fitted.durationSeconds} s`;
    });
  expect(counts({})).toEqual([100, 1000, 1000, 3000, '10 s', 1000]);
  expect(counts({ quick: true })).toEqual([80, 400, 400, 300, '2 s', 200]);
  const timedAll = Array.from({ length: 5 }, () => '3 s');
  expect(counts({ quick: true, durationSeconds: 3 })).toEqual([...timedAll, 300]);
});

test.each([null, 5, 'x', []])('refuses %j as a scenario', (value) => {
  expect(() => defineScenario(value as unknown as Scenario)).toThrow(/^scenario undefined: /);
});

test('all that is wrong is told, a line each, at most ten', () => {
  const messageOf = (scenario: unknown): string => {
    try {
      defineScenario(scenario as Scenario);
    } catch (error) {
      return (error as Error).message;
    }
    return '';
  };
  const { title: _, knob: __, ...rest } = good;
  expect(
    messageOf({ ...rest, tilte: 'x', knob: 5, rounds: 'many' })
      .split('\n')
      .sort(),
  ).toEqual([
    expect.stringMatching(/^scenario good: knob has to be a text$/),
    expect.stringMatching(/^scenario good: rounds has to be a number$/),
    expect.stringMatching(/^scenario good: there is no field "tilte": did you mean title\?$/),
  ]);
  const wrong = { server: nginx(['base', 'x.conf'], workers) };
  const variants = Array.from({ length: 12 }, (___, index) => ({ name: `v${index}`, ...wrong }));
  const lines = messageOf({ ...good, variants }).split('\n');
  expect(lines).toHaveLength(10);
  expect(lines[9]).toMatch(/^scenario good: variant "v9" .*x\.conf/);
});
