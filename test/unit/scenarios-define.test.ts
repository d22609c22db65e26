import { describe, expect, test } from 'vitest';
import {
  baselineName,
  fitVariantLoad,
  isRunnable,
  loadOf,
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
  type LoadProfile,
  type NetworkSpec,
  type Scenario,
  type ServerSpec,
  type Variant,
} from '../../lib/scenario/index.ts';

const workers = { workers: 1 };
const first: Variant = { name: 'first', server: nginx(['base'], workers), published: { rps: 1 } };
const second: Variant = { name: 'second', server: h2o(['h2'], workers) };
const third: Variant = { name: 'third', server: nghttpd(['h2'], workers) };
const gone: Variant = { name: 'gone', server: 'nobody has it any more', published: { rps: 2 } };
const good: Scenario = {
  name: 'good',
  title: 'x',
  article: { id: '001', title: 'x', year: 2017 },
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

test('a good one comes back as it is', () => {
  expect(defineScenario(good)).toBe(good);
  const more = { ...good, phases: { count: 3, pauseSeconds: 0 }, rounds: 1 };
  expect(defineScenario(more)).toBe(more);
  expect(() =>
    defineScenario({
      ...good,
      variants: [
        { ...first, load: wrk('-c 2') },
        {
          ...second,
          load: vegeta('-duration=1s', { bucketsMs: [1], tls: { minVersion: 'TLSv1.3' } }),
        },
      ],
    }),
  ).not.toThrow();
});

test("configs of a person's own, a page per variant, controls and further comparisons are taken", () => {
  const own: Variant = {
    name: 'own',
    server: nginx(['/etc/nginx/nginx.conf'], { workers: 'server-cores', asIs: { port: 80 } }),
    page: { path: '/?a=1', host: 'a.example:81', bodyBytes: 1 },
    needsServerCores: 2,
  };
  const mixed: Scenario = {
    ...good,
    variants: [first, second, own],
    control: true,
    sharedCores: true,
    alsoCompare: [
      { variant: 'own', against: 'second' },
      { variant: 'second', against: 'own' },
    ],
  };
  expect(defineScenario(mixed)).toBe(mixed);
  expect(pageOf(mixed, own).path).toBe('/?a=1');
  expect(pageOf(mixed, first)).toBe(page);
  const baselines = {
    ...good,
    variants: [first, { ...second, against: null }, { ...own, against: 'second' }],
  };
  expect(
    defineScenario(baselines).variants.map((variant) => baselineName(baselines, variant)),
  ).toEqual([undefined, undefined, 'second']);
  const alone = {
    ...good,
    page: { path: '/', bodyBytes: 0 },
    variants: [{ ...own, server: nghttpd(['/a'], { workers: 1, asIs: {} }) }],
  };
  expect(defineScenario(alone)).toBe(alone);
  const asked = {
    ...good,
    load: { ...load, method: 'POST', headers: { 'Accept-Encoding': 'gzip' }, body: 'x' },
  };
  expect(defineScenario(asked)).toBe(asked);
  const anything: Scenario = {
    ...good,
    load: wrk('-c 2'),
    page: { path: '/', bodyBytes: 0, status: 404 },
    variants: [
      { name: 'here', server: command('node server.js', { port: 3000, folder: 'app', tls: true }) },
      { name: 'there', server: address('https://staging.example.com:8443') },
    ],
  };
  expect(defineScenario(anything)).toBe(anything);
  expect(anything.variants.map(({ server }) => programOf(server as ServerSpec))).toEqual([
    'node',
    'staging.example.com:8443',
  ]);
});

test("a network of the scenario's, and a variant's own, with the widest values", () => {
  const wide: NetworkSpec = {
    toServer: { delayMs: 60_000, queuePackets: 1, bytesPerSecond: 1, lossShare: 0.999 },
    toClient: { delayMs: 0, lossShare: 0 },
    serverSettings: ['./a.conf', '/b.conf'],
    clientSettings: ['generator'],
  };
  const scenario: Scenario = {
    ...good,
    network,
    phases: { count: 1, pauseSeconds: 0 },
    variants: [first, { ...second, network: wide }],
  };
  expect(defineScenario(scenario)).toBe(scenario);
  expect(scenario.variants.map((variant) => networkOf(scenario, variant))).toEqual([network, wide]);
  expect(networkOf(good, first)).toBeUndefined();
  const shorter = { ...good, load: { ...load, secondsHere: 0.5, expectedRps: 0.1 } };
  expect(defineScenario(shorter)).toBe(shorter);
});

test('servers are what their names say', () => {
  expect(
    nghttpd(['h2', 'streams-1024'], {
      workers: 'server-cores',
      articleWorkers: 2,
      fileLimit: 1024,
    }),
  ).toEqual({
    name: 'nghttpd',
    config: ['h2', 'streams-1024'],
    workers: 'server-cores',
    articleWorkers: 2,
    fileLimit: 1024,
  });
  expect(h2o(['h2'], workers)).toEqual({ name: 'h2o', config: ['h2'], workers: 1 });
  expect(nginx(['h2'], workers)).toEqual({ name: 'nginx', config: ['h2'], workers: 1 });
});

describe('is refused, with the field named:', () => {
  const withLoad = (change: object): Scenario => ({
    ...good,
    load: { ...load, ...change } as LoadProfile,
  });
  const withServer = (change: object): Scenario => ({
    ...good,
    variants: [{ ...first, server: { ...nginx(['base'], workers), ...change } }],
  });
  const { docroot: _, ...ownPage } = page;
  const withOwn = (server: object, more: object = {}): Scenario => ({
    ...good,
    variants: [
      {
        name: 'first',
        server: { ...nginx(['/a.conf'], { workers: 1, asIs: {} }), ...server },
        page: ownPage,
        ...more,
      },
    ],
  });
  const withSide = (server: ServerSpec, more: object = {}): Scenario => ({
    ...good,
    variants: [{ name: 'side', server, page: ownPage, ...more }],
  });
  const inNetwork = (change: object, more: object = {}): Scenario => ({
    ...good,
    network: { ...network, ...change },
    ...more,
  });
  const toServer = (change: object): Scenario =>
    inNetwork({ toServer: { ...network.toServer, ...change } });
  const comparing = (...alsoCompare: object[]): Scenario => ({ ...good, alsoCompare }) as Scenario;
  test.each<[string, Scenario, RegExp]>([
    [
      'a config of its own by a relative path',
      withOwn({ config: ['a.conf'] }),
      /variant "first" is asIs: its config has to be one file, named by its path such as/,
    ],
    [
      'two configs of its own',
      withOwn({ config: ['/a.conf', '/b.conf'] }),
      /variant "first" is asIs: its config has to be one file/,
    ],
    ['none', withOwn({ config: [] }), /variant "first" is asIs: its config has to be one file/],
    [
      'a config of its own with a docroot',
      withOwn({}, { page }),
      /variant "first" is asIs: what it serves is in its config/,
    ],
    [
      "one with the scenario's docroot",
      withOwn({}, { page: undefined }),
      /variant "first" is asIs: what it serves is in its config/,
    ],
    [
      'port 0',
      withOwn({ asIs: { port: 0 } }),
      /variant "first": server: asIs: port 0 has to be a whole number from 1 to 65535$/,
    ],
    [
      'port 65536',
      withOwn({ asIs: { port: 65_536 } }),
      /variant "first": server: asIs: port 65536/,
    ],
    [
      'a page without a folder to serve',
      { ...good, page: ownPage },
      /variant "first" has a page without docroot/,
    ],
    [
      "a variant's page without a path",
      { ...good, variants: [{ ...first, page: { ...page, path: '' } }] },
      /variant "first" page: path ""/,
    ],
    [
      'a page with a blank',
      { ...good, page: { ...page, path: '/a b' } },
      /page: path "\/a b" has a blank/,
    ],
    [
      'a page with a fragment',
      { ...good, page: { ...page, path: '/#a' } },
      /page: path "\/#a" has a blank or a #/,
    ],
    ['a host with a path', { ...good, page: { ...page, host: 'a/b' } }, /page: host "a\/b"/],
    ['no host', { ...good, page: { ...page, host: '' } }, /page: host ""/],
    [
      'half a server core',
      { ...good, variants: [first, { ...second, needsServerCores: 1.5 }] },
      /variant "second": needsServerCores 1\.5 has to be a whole number from 1 to 1024$/,
    ],
    [
      'a comparison of nobody',
      comparing({ variant: 'third', against: 'nobody' }),
      /alsoCompare names "nobody", which is not there/,
    ],
    [
      'a comparison with what cannot be run',
      comparing({ variant: 'gone', against: 'first' }),
      /alsoCompare names "gone", which is published only/,
    ],
    [
      'a comparison with itself',
      comparing({ variant: 'third', against: 'third' }),
      /alsoCompare compares "third" with itself/,
    ],
    [
      'a comparison twice',
      comparing({ variant: 'third', against: 'second' }, { variant: 'third', against: 'second' }),
      /alsoCompare names "third" against "second" twice/,
    ],
    [
      'a method of the wrong letters',
      withLoad({ method: 'post' }),
      /load: method "post" has to be/,
    ],
    ['CONNECT', withLoad({ method: 'CONNECT' }), /load: method "CONNECT" has to be/],
    [
      'a header without a name',
      withLoad({ headers: { '': 'x' } }),
      /load: headers: "" is not a header name/,
    ],
    [
      'a header of two lines',
      withLoad({ headers: { A: 'x\ny' } }),
      /load: headers: the value of A has a line break/,
    ],
    [
      'a length of its own',
      withLoad({ headers: { 'content-length': '5' } }),
      /load: headers: content-length is set by the load generator/,
    ],
    [
      'an upgrade of HTTP/2',
      withLoad({ headers: { Upgrade: 'x' } }),
      /load: headers: Upgrade is not allowed in HTTP\/2/,
    ],
    [
      'a command without words',
      withSide(command(' ')),
      /^scenario good: variant "side" has a command that cannot run: the command names no program/,
    ],
    [
      'a command for a shell',
      withSide(command('a | b')),
      /variant "side" has a command that cannot run: the command: \| needs a shell: write sh -c '…'$/,
    ],
    [
      'a command on port 0',
      withSide(command('a', { port: 0 })),
      /variant "side": server: port 0 has to be/,
    ],
    [
      'a command with a docroot',
      withSide(command('a'), { page }),
      /variant "side" is a command: what it serves is its own/,
    ],
    [
      'a command in a network',
      withSide(command('a'), { network }),
      /variant "side" is your own \(asIs, a command or an address\)/,
    ],
    [
      'an address without a scheme',
      withSide(address('127.0.0.1:8080')),
      /variant "side" has the address "127\.0\.0\.1:8080": write one such as http:\/\/127\.0\.0\.1:8080$/,
    ],
    [
      'an address with a path',
      withSide(address('http://a.org:81/x?y')),
      /variant "side" has the address "http:\/\/a\.org:81\/x\?y": write http:\/\/a\.org:81, and what follows it as the page's path$/,
    ],
    ['an address with a slash', withSide(address('http://a.org/')), /: write http:\/\/a\.org, and/],
    [
      'an address with a password',
      withSide(address('http://me:hunter2@a.org')),
      /variant "side" has an address with a user name in it: give a header, Authorization: Basic …$/,
    ],
    [
      'a status that no page has',
      { ...good, page: { ...page, status: 99 } },
      /page: status 99 has to be a whole number from 200 to 599$/,
    ],
    [
      'a bad name',
      { ...good, name: 'Good one' },
      /^scenario "Good one": name "Good one" may have a-z, 0-9 and - only, at most 200 of them$/,
    ],
    [
      'a name of digits',
      { ...good, name: '2024' },
      /^scenario "?2024"?: name "2024" has to have a letter or a - in it: /,
    ],
    [
      "a variant's name of digits",
      { ...good, variants: [{ ...first, name: '1' }] },
      /variant "1": name "1" has to have a letter/,
    ],
    ['no variants', { ...good, variants: [] }, /^scenario good: has no variants$/],
    ['two of a name', { ...good, variants: [first, first] }, /two variants are named "first"/],
    [
      'a bad variant name',
      { ...good, variants: [{ ...first, name: 'a b' }] },
      /variant "a b": name "a b" may have/,
    ],
    ['nothing to run', { ...good, variants: [gone] }, /has published figures only/],
    [
      'published only without figures',
      { ...good, variants: [first, { name: 'gone', server: 'no' }] },
      /variant "gone" is published only, and has no published figures/,
    ],
    [
      'published only without a reason',
      { ...good, variants: [first, { ...gone, server: ' ' }] },
      /variant "gone" has an empty text/,
    ],
    [
      'a baseline that is not there',
      { ...good, variants: [first, { ...second, against: 'fisrt' }] },
      /variant "second" is against "fisrt", which is not there/,
    ],
    [
      'a baseline that cannot be run',
      { ...good, variants: [first, gone, { ...second, against: 'gone' }] },
      /variant "second" is against "gone", which is published only/,
    ],
    [
      'a first variant that cannot be run',
      { ...good, variants: [gone, first] },
      /variant "first" is against "gone", which is published only/,
    ],
    [
      'a variant against itself',
      { ...good, variants: [first, { ...second, against: 'second' }] },
      /variant "second" is against itself/,
    ],
    [
      'a page without a folder',
      { ...good, page: { ...page, docroot: '' } },
      /page: docroot is empty/,
    ],
    [
      'several pages without the first one',
      { ...good, page: { ...page, weights: { '/a': 1 } } },
      /page: path "\/" has to be one of weights$/,
    ],
    [
      'several pages, one without a slash',
      { ...good, page: { ...page, weights: { '/': 1, 'a.html': 1 } } },
      /page: path "a\.html" has to begin with \//,
    ],
    [
      'several pages, one with a blank',
      { ...good, page: { ...page, weights: { '/': 1, '/a b': 1 } } },
      /page: path "\/a b" has a blank or a # in it/,
    ],
    [
      'a weight of 0',
      { ...good, page: { ...page, weights: { '/': 0 } } },
      /page: weights: \/ 0 has to be a whole number from 1 to 1000000000$/,
    ],
    [
      'too many pages',
      {
        ...good,
        page: {
          ...page,
          weights: Object.fromEntries(
            Array.from({ length: 100_001 }, (_, index) => [`/${index}`, 1]),
          ),
        },
      },
      /page: weights has to have at most 100000 paths$/,
    ],
    [
      'a page without a path',
      { ...good, page: { ...page, path: 'index.html' } },
      /page: path "index\.html" has to begin with \//,
    ],
    ['a page of -1 bytes', { ...good, page: { ...page, bodyBytes: -1 } }, /page: bodyBytes -1/],
    ['no phase', { ...good, phases: { count: 0, pauseSeconds: 5 } }, /phases: count 0/],
    ['half a phase', { ...good, phases: { count: 1.5, pauseSeconds: 5 } }, /phases: count 1\.5/],
    [
      'a pause before the start',
      { ...good, phases: { count: 2, pauseSeconds: -1 } },
      /phases: pauseSeconds -1/,
    ],
    [
      'an endless pause',
      { ...good, phases: { count: 2, pauseSeconds: Infinity } },
      /phases: pauseSeconds Infinity/,
    ],
    ['no round', { ...good, rounds: 0 }, /rounds 0/],
    [
      'figures of other phases',
      {
        ...good,
        phases: { count: 3, pauseSeconds: 0 },
        variants: [{ ...first, published: { phases: [{}, {}] } }],
      },
      /variant "first" has published figures of 2 phases, not of 3/,
    ],
    [
      'figures of phases without phases',
      { ...good, variants: [{ ...first, published: { phases: [{}, {}] } }] },
      /of 2 phases, not of 1/,
    ],
    [
      'a server of another name',
      withServer({ name: 'apache' }),
      /variant "first": server: name "apache" has to be nginx, h2o or nghttpd$/,
    ],
    [
      'no config',
      withServer({ config: [] }),
      /has no config: name files of server-configs\/nginx\//,
    ],
    ['half a worker', withServer({ workers: 0.5 }), /server: workers 0\.5 has to be/],
    [
      'no workers',
      withServer({ workers: 'many' }),
      /server: workers "many" has to be a whole number above 0 or 'server-cores'$/,
    ],
    ['no article workers', withServer({ articleWorkers: 0 }), /server: articleWorkers 0 has to be/],
    ['no files', withServer({ fileLimit: 0 }), /server: fileLimit 0 has to be/],
    [
      'HTTP/1.1 on nghttpd',
      { ...good, load: wrk('-c 2'), variants: [third] },
      /variant "third" asks nghttpd for http\/1\.1, and it speaks HTTP\/2 only/,
    ],
    [
      'streams with HTTP/1.1',
      { ...withLoad({ protocol: 'http/1.1', streams: 2 }), variants: [first] },
      /load: streams 2 need h2 or h2c, not http\/1\.1/,
    ],
    [
      "streams with HTTP/1.0, in a variant's load",
      { ...good, variants: [{ ...first, load: { ...ab('-n 5'), streams: 5 } }] },
      /variant "first" load: streams 5 need/,
    ],
    ['another protocol', withLoad({ protocol: 'h3' }), /load: protocol "h3" has to be/],
    ['half a connection', withLoad({ connections: 0.5 }), /load: connections 0\.5/],
    ['no stream', withLoad({ streams: 0 }), /load: streams 0/],
    ['no thread', withLoad({ threads: NaN }), /load: threads NaN/],
    [
      'a count and a duration',
      withLoad({ durationSeconds: 5 }),
      /load: one of requests and durationSeconds has to be set/,
    ],
    [
      'neither',
      withLoad({ requests: undefined }),
      /load: one of requests and durationSeconds has to be set/,
    ],
    [
      'a rate without a count',
      withLoad({ requests: undefined, durationSeconds: 5, rate: 10 }),
      /load: a rate goes with requests/,
    ],
    [
      'a limit of another percentile',
      { ...good, within: { metric: 'p100' as 'p99', ms: 5 } },
      /within: metric "p100" has to be/,
    ],
    ['a limit of nothing', { ...good, within: { metric: 'p99', ms: 0 } }, /within: ms 0 has to be/],
    [
      'a limit and phases',
      { ...good, within: { metric: 'p99', ms: 5 }, phases: { count: 2, pauseSeconds: 0 } },
      /: has within, and phases\.count: a search has load phases of its own$/,
    ],
    [
      'arrivals without a rate',
      withLoad({ arrivals: 'poisson' }),
      /load: arrivals are those of a rate/,
    ],
    [
      'other arrivals',
      withLoad({ rate: 10, arrivals: 'bursty' }),
      /load: arrivals "bursty" has to be/,
    ],
    ['a rate of 0', withLoad({ rate: 0 }), /load: rate 0 has to be above 0/],
    [
      'an endless time-out',
      withLoad({ timeoutSeconds: Infinity }),
      /load: timeoutSeconds Infinity/,
    ],
    ['a warm-up of -1 s', withLoad({ warmupSeconds: -1 }), /load: warmupSeconds -1/],
    [
      'HTTP/2 with a connection per request',
      withLoad({ keepAlive: false }),
      /load: keepAlive is false, and HTTP\/2 keeps its connections/,
    ],
    ['no buckets', withLoad({ bucketSeconds: [] }), /load: bucketSeconds/],
    [
      'buckets that fall',
      withLoad({ bucketSeconds: [0.002, 0.001] }),
      /load: bucketSeconds have to be ascending/,
    ],
    ['a bucket that ends at 0', withLoad({ bucketSeconds: [0, 0.001] }), /load: bucketSeconds/],
    ['no seconds here', withLoad({ secondsHere: 0 }), /load: secondsHere 0 has to be above 0/],
    [
      'seconds here for a duration',
      withLoad({ requests: undefined, durationSeconds: 5, secondsHere: 10 }),
      /load: secondsHere take the place of requests/,
    ],
    [
      'seconds here at a rate',
      withLoad({ rate: 10, secondsHere: 10 }),
      /load: secondsHere take the place of requests/,
    ],
    [
      'no requests/s to expect',
      withLoad({ expectedRps: 0 }),
      /load: expectedRps 0 has to be above 0/,
    ],
    [
      'a delay below 0',
      toServer({ delayMs: -1 }),
      /^scenario good: network: toServer: delayMs -1 has to be from 0 to 60000$/,
    ],
    ['an endless delay', toServer({ delayMs: Infinity }), /network: toServer: delayMs Infinity/],
    ['a delay of no number', toServer({ delayMs: NaN }), /network: toServer: delayMs NaN/],
    [
      'a delay of over a minute, back',
      inNetwork({ toClient: { delayMs: 60_001 } }),
      /network: toClient: delayMs 60001/,
    ],
    [
      'no room in the queue',
      toServer({ queuePackets: 0 }),
      /network: toServer: queuePackets 0 has to be a whole number from 1/,
    ],
    ['half a packet', toServer({ queuePackets: 0.5 }), /network: toServer: queuePackets 0\.5/],
    [
      'less than a byte/s',
      toServer({ bytesPerSecond: 0.5 }),
      /network: toServer: bytesPerSecond 0.5 has to be/,
    ],
    [
      'endless bytes/s',
      toServer({ bytesPerSecond: Infinity }),
      /network: toServer: bytesPerSecond Infinity/,
    ],
    [
      'a loss of all',
      toServer({ lossShare: 1 }),
      /network: toServer: lossShare 1 has to be below 1: 0\.01 is 1 %$/,
    ],
    [
      'a limit that is misspelt',
      toServer({ queuPackets: 1000 }),
      /network: toServer: there is no field "queuPackets": did you mean queuePackets\?$/,
    ],
    ['a loss below 0', toServer({ lossShare: -0.1 }), /network: toServer: lossShare -0\.1/],
    [
      'settings by half a path',
      inNetwork({ serverSettings: ['a.conf'] }),
      /network: serverSettings "a\.conf": write \.\/a\.conf for a file beside the scenario/,
    ],
    ['settings without a name', inNetwork({ clientSettings: [''] }), /network: clientSettings ""/],
    [
      "a variant's network",
      {
        ...good,
        variants: [first, { ...second, network: { ...network, toClient: { delayMs: -5 } } }],
      },
      /^scenario good: variant "second": network: toClient: delayMs -5/,
    ],
    [
      'a whole config of its own in a network',
      { ...withOwn({}), network },
      /variant "first" is your own \(asIs, a command or an address\)/,
    ],
    [
      'phases in a network',
      inNetwork({}, { phases: { count: 2, pauseSeconds: 0 } }),
      /variant "first" has a network, and phases\.count is 2: in a network there is one load phase/,
    ],
    [
      'phases of a variant in a network',
      { ...good, phases: { count: 2, pauseSeconds: 0 }, variants: [first, { ...second, network }] },
      /variant "second" has a network, and phases\.count is 2/,
    ],
    [
      'delays longer than the time-out',
      inNetwork({ toClient: { delayMs: 2400 } }, { load: wrk('-c 1 -t 1'), variants: [first] }),
      /variant "first" has a network whose delays take 5 s of the first request, and its load gives up after 5 s/,
    ],
    ['TLS on h2c', withLoad({ protocol: 'h2c', tls: {} }), /load: h2c is HTTP\/2 without TLS/],
    [
      'TLS 1.1',
      withLoad({ tls: { minVersion: 'TLSv1.1' } }),
      /load: tls: minVersion "TLSv1\.1" has to be TLSv1\.2 or TLSv1\.3$/,
    ],
    [
      'TLS versions the wrong way round',
      withLoad({ tls: { minVersion: 'TLSv1.3', maxVersion: 'TLSv1.2' } }),
      /load: tls: minVersion is above maxVersion/,
    ],
  ])('%s', (_, scenario, message) => {
    expect(() => defineScenario(scenario)).toThrow(message);
  });
});

describe('a variant', () => {
  test("has its own load or the scenario's", () => {
    const own = wrk('-c 2');
    expect(loadOf(good, first)).toBe(load);
    expect(loadOf(good, { ...first, load: own })).toBe(own);
    expect([first, gone].map(isRunnable)).toEqual([true, false]);
  });

  test('makes as many requests as those beside it whose articles counted as many, with quick too', () => {
    const many = { ...second, load: h2load('-n 1000 -c 10 -m 10') };
    const one = { ...third, load: h2load('-n 1000 -c 10') };
    const other = { ...third, name: 'other', load: h2load('-n 3000 -c 10') };
    const timed = { ...third, name: 'timed', load: h2load('-D 10 -c 10') };
    const rated = { ...third, name: 'rated', load: vegeta('-rate=100 -duration=10s') };
    const scenario = { ...good, variants: [first, many, one, other, timed, rated] };
    const counts = (options: object): unknown[] =>
      scenario.variants.map((variant) => {
        const fitted = fitVariantLoad(scenario, variant, {
          generatorCores: 1,
          exact: false,
          ...options,
        });
        return fitted.requests ?? `${fitted.durationSeconds} s`;
      });
    expect(counts({})).toEqual([100, 1000, 1000, 3000, '10 s', 1000]);
    expect(counts({ quick: true })).toEqual([80, 400, 400, 300, '2 s', 200]);
    expect(counts({ quick: true, durationSeconds: 3 })).toEqual([
      '3 s',
      '3 s',
      '3 s',
      '3 s',
      '3 s',
      300,
    ]);
  });
});

describe('where TypeScript was not asked, is refused with the field named:', () => {
  const without = (field: string): object =>
    Object.fromEntries(Object.entries(good).filter(([name]) => name !== field));
  test.each<[string, object, string]>([
    ['no name', without('name'), 'scenario undefined: name is missing'],
    ['no title', without('title'), 'scenario good: title is missing'],
    ['no knob', without('knob'), 'scenario good: knob is missing'],
    ['no page', without('page'), 'scenario good: page is missing'],
    ['no variants', without('variants'), 'scenario good: variants is missing'],
    [
      'a command line as the load',
      { ...good, load: '-n 100' },
      'scenario good: load has to be an object',
    ],
    [
      'a load of the wrong words',
      { ...good, load: { requests: 100 } },
      'scenario good: load: command is missing',
    ],
    [
      'a number as a path',
      { ...good, page: { ...page, path: 5 } },
      'scenario good: page: path has to be a text',
    ],
    ['one variant', { ...good, variants: first }, 'scenario good: variants has to be a list'],
    [
      'a variant without a name',
      { ...good, variants: [first, { server: second.server }] },
      'scenario good: variant 2: name is missing',
    ],
    [
      'a hole among the variants',
      { ...good, variants: [first, null] },
      'scenario good: variant 2: has to be an object',
    ],
    [
      'a variant without a server',
      { ...good, variants: [{ name: 'first' }] },
      'scenario good: variant "first": server is missing',
    ],
    [
      'a load of a variant',
      { ...good, variants: [{ ...first, load: {} }] },
      'scenario good: variant "first": load: command is missing',
    ],
    [
      'a number as a host',
      { ...good, page: { ...page, host: 1 } },
      'scenario good: page: host has to be a text',
    ],
    [
      "a variant's page",
      { ...good, variants: [{ ...first, page: '/' }] },
      'scenario good: variant "first": page has to be an object',
    ],
    [
      'asIs alone',
      { ...good, variants: [{ ...first, server: { ...nginx(['base'], workers), asIs: true } }] },
      'scenario good: variant "first": server: asIs has to be an object',
    ],
    [
      'a list of headers',
      { ...good, load: { ...load, headers: ['a: b'] } },
      'scenario good: load: headers has to be an object of texts',
    ],
    [
      'a number as a header',
      { ...good, load: { ...load, headers: { a: 1 } } },
      'scenario good: load: headers has to be an object of texts',
    ],
    [
      'an object as a body',
      { ...good, load: { ...load, body: {} } },
      'scenario good: load: body has to be a text',
    ],
    [
      'a network that is a number',
      { ...good, network: 100 },
      'scenario good: network has to be an object',
    ],
    [
      'a network of one direction',
      { ...good, network: { ...network, toClient: undefined } },
      'scenario good: network: toClient is missing',
    ],
    [
      'a direction without a delay',
      { ...good, network: { ...network, toServer: {} } },
      'scenario good: network: toServer: delayMs is missing',
    ],
    [
      'a loss in words',
      { ...good, network: { ...network, toClient: { delayMs: 1, lossShare: '0.1' } } },
      'scenario good: network: toClient: lossShare has to be a number',
    ],
    [
      'a delay in words',
      { ...good, network: { ...network, toClient: { delayMs: '100ms' } } },
      'scenario good: network: toClient: delayMs has to be a number',
    ],
    [
      'settings that are no list',
      { ...good, network: { ...network, serverSettings: 'centos-7' } },
      'scenario good: network: serverSettings has to be a list of texts',
    ],
    [
      "a variant's network without settings",
      { ...good, variants: [{ ...first, network: { ...network, clientSettings: undefined } }] },
      'scenario good: variant "first": network: clientSettings is missing',
    ],
    [
      'a control that is none',
      { ...good, control: false },
      'scenario good: control has to be true, or left out',
    ],
    [
      'cores that are not shared',
      { ...good, sharedCores: 'no' },
      'scenario good: sharedCores "no" has to be true, or left out',
    ],
    [
      'one further comparison',
      { ...good, alsoCompare: { variant: 'third', against: 'first' } },
      'scenario good: alsoCompare has to be a list',
    ],
    [
      'half a comparison',
      { ...good, alsoCompare: [{ variant: 'third' }] },
      'scenario good: alsoCompare[0]: against is missing',
    ],
    [
      'one footnote',
      { ...good, footnotes: 'x' },
      'scenario good: footnotes has to be a list of texts',
    ],
    [
      'one config',
      { ...good, variants: [{ ...first, server: { name: 'nginx', config: 'base', workers: 1 } }] },
      'scenario good: variant "first": server: config has to be a list of texts',
    ],
  ])('%s', (_, scenario, message) => {
    expect(() => defineScenario(scenario as Scenario)).toThrow(
      expect.objectContaining({ message }) as Error,
    );
  });
  test('an article is not asked for', () => {
    const own = without('article') as Scenario;
    expect(defineScenario(own)).toBe(own);
  });
});

describe('a field that is misspelt is refused, with the nearest right one:', () => {
  const full = {
    ...good,
    network,
    alsoCompare: [{ variant: 'third', against: 'second' }],
    load: { ...load, tls: { minVersion: 'TLSv1.2' } },
    variants: [
      first,
      { ...second, against: 'first', load, page, network },
      {
        ...third,
        published: {
          latencyMs: { mean: 1, sd: 1, max: 1, withinSdPercent: 1 },
          tls: { version: 'x', cipher: 'x', keyExchange: 'x' },
          responses: { '2xx': 1 },
        },
      },
      gone,
    ],
  };
  const own = {
    ...good,
    variants: [
      {
        name: 'first',
        server: nginx(['/a.conf'], { workers: 1, asIs: { port: 80 } }),
        page: { path: '/', bodyBytes: 1 },
      },
    ],
  };
  const phased = {
    ...good,
    phases: { count: 1, pauseSeconds: 0 },
    variants: [
      {
        ...first,
        published: {
          phases: [{ rps: 1, buckets: [{ fromSeconds: 0, toSeconds: null, count: 1 }] }],
        },
      },
    ],
  };

  /** All objects in a value, by their path; texts as values are none. */
  const objects = (value: unknown, at: string): [string, Record<string, unknown>][] =>
    typeof value !== 'object' || value === null
      ? []
      : [
          ...(Array.isArray(value)
            ? []
            : [[at, value as Record<string, unknown>] as [string, Record<string, unknown>]]),
          ...Object.entries(value).flatMap(([key, inner]) => objects(inner, `${at}/${key}`)),
        ];
  const whole = [full, own, phased];
  test.each(
    whole.flatMap((scenario, index) =>
      objects(scenario, '').map(([at]) => [at === '' ? '/' : at, index] as const),
    ),
  )('in %s of scenario %i', (at, index) => {
    const odd = structuredClone(whole[index]) as Scenario;
    expect(() => defineScenario(structuredClone(odd))).not.toThrow();
    const target = (
      objects(odd, '').find(([place]) => place === (at === '/' ? '' : at)) as [
        string,
        Record<string, unknown>,
      ]
    )[1];
    const [field] = Object.keys(target) as [string];
    target[`${field}s`] = target[field];
    expect(() => defineScenario(odd)).toThrow(
      new RegExp(`there is no field "${field}s": did you mean ${field}\\?$`),
    );
  });

  test.each<[object, string]>([
    [
      { ...good, variants: [first, { ...second, againts: 'first' }] },
      'scenario good: variant "second": there is no field "againts": did you mean against?',
    ],
    [{ ...good, round: 1 }, 'scenario good: there is no field "round": did you mean rounds?'],
    [
      { ...good, alsoCompar: [] },
      'scenario good: there is no field "alsoCompar": did you mean alsoCompare?',
    ],
    [
      { ...good, knobb: 'x', knob: undefined },
      'scenario good: there is no field "knobb": did you mean knob?',
    ],
    [
      { ...good, load: { ...load, timeout: 1 } },
      'scenario good: load: there is no field "timeout": did you mean timeoutSeconds?',
    ],
    [
      { ...good, constructor: 1 },
      'scenario good: there is no field "constructor": the nearest is control',
    ],
    [
      { ...good, page: { ...page, toString: 1 } },
      'scenario good: page: there is no field "toString": there are docroot, path, host, weights, bodyBytes, status',
    ],
  ])('%#', (scenario, message) => {
    expect(() => defineScenario(scenario as Scenario)).toThrow(
      expect.objectContaining({ message }) as Error,
    );
  });
});

test.each<[string, object]>([
  ['rounds 1e+300', { ...good, rounds: 1e300 }],
  ['rounds 1001', { ...good, rounds: 1001 }],
  ['rounds Infinity', { ...good, rounds: Infinity }],
  [
    'load: durationSeconds 1e+300',
    { ...good, load: { ...load, requests: undefined, durationSeconds: 1e300 } },
  ],
  ['load: threads 1000000000', { ...good, load: { ...load, threads: 1e9 } }],
  ['load: connections -1', { ...good, load: { ...load, connections: -1 } }],
  ['phases: count 1e+300', { ...good, phases: { count: 1e300, pauseSeconds: 0 } }],
  [
    'variant "first": server: workers 1000000000',
    { ...good, variants: [{ ...first, server: nginx(['base'], { workers: 1e9 }) }] },
  ],
  [
    'variant "first": published: rps -1',
    { ...good, variants: [{ ...first, published: { rps: -1 } }] },
  ],
  [
    'variant "first": published: rps NaN',
    { ...good, variants: [{ ...first, published: { rps: NaN } }] },
  ],
  [
    'variant "first": published: rps Infinity',
    { ...good, variants: [{ ...first, published: { rps: Infinity } }] },
  ],
])('a number that cannot be is refused: %s', (words, scenario) => {
  expect(() => defineScenario(scenario as Scenario)).toThrow(`scenario good: ${words} has to be `);
});

test.each([null, 5, 'x', []])('%j is no scenario', (value) => {
  expect(() => defineScenario(value as unknown as Scenario)).toThrow(/^scenario undefined: /);
});
