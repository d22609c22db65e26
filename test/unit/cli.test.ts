import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { UserError } from '../../lib/errors.ts';
import { readScenarioOptions } from '../../lib/cli/scenario.ts';
import { main } from '../commands.ts';

const printed: string[] = [];
const complained: string[] = [];

beforeEach(() => {
  printed.length = 0;
  complained.length = 0;
  vi.spyOn(console, 'log').mockImplementation((text: string) => {
    printed.push(text);
  });
  vi.spyOn(console, 'error').mockImplementation((text: string) => {
    complained.push(text);
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

describe('wrong words end with code 2 and one line, before anything starts', () => {
  test.each([
    [['scenari'], 'there is no command "scenari": did you mean scenario?'],
    [['constructor'], /^there is no command "constructor"/],
    [
      ['scenario', 'ngin-open'],
      'there is no scenario "ngin-open": did you mean nginx-open-file-cache?',
    ],
    [
      ['scenario', 'nginx-open-file-cach'],
      'there is no scenario "nginx-open-file-cach": did you mean nginx-open-file-cache?',
    ],
    [
      ['scenario', 'nginx-open-file-cache', '--round', '3'],
      'there is no flag "--round": did you mean --rounds?',
    ],
    [['scenario', 'nginx-open-file-cache', '-r'], /^there is no flag "-r"/],
    [['scenario', '--constructor'], /^there is no flag "--constructor"/],
    [
      ['scenario', 'nginx-open-file-cache', '--variants', 'worker'],
      /"worker": did you mean workers\?$/,
    ],
    [
      ['scenario', 'nginx-open-file-cache', '--variants', 'workers,workers'],
      '--variants names workers twice',
    ],
    [
      ['scenario', 'http1-vs-h2-small-file', '--variants', 'nginx-spdy'],
      '--variants nginx-spdy: published only, so there is nothing to run; name another one too',
    ],
    [
      ['scenario', 'nginx-open-file-cache', '--variants='],
      '--variants needs a value: --variants a,b',
    ],
    [
      ['scenario', 'nginx-open-file-cache', '--rounds', '0'],
      '--rounds 0: give a whole number from 1 to 1000',
    ],
    [
      ['scenario', 'nginx-open-file-cache', '--rounds', '2.5'],
      '--rounds 2.5: give a whole number from 1 to 1000',
    ],
    [
      ['scenario', 'nginx-open-file-cache', '--rounds', '1e3'],
      '--rounds 1e3: give a whole number from 1 to 1000',
    ],
    [
      ['scenario', 'nginx-open-file-cache', '--rounds', '--quick'],
      '--rounds needs a value: --rounds N',
    ],
    [['scenario', 'nginx-open-file-cache', '--rounds'], '--rounds needs a value: --rounds N'],
    [
      ['scenario', 'nginx-open-file-cache', '--rounds', '3', '--rounds', '4'],
      '--rounds is given twice',
    ],
    [
      ['scenario', 'nginx-open-file-cache', '--rounds', 'automatic'],
      '--rounds automatic: give a whole number from 1 to 1000',
    ],
    [['clean', 'k6'], 'clean takes no words but its flags: leave out "k6"'],
    [
      ['compare', 'a.conf', 'b.conf', '--name', '../x'],
      '--name "../x" may have a-z, 0-9 and - only, at most 200 of them',
    ],
    [
      ['compare', 'a.conf', 'b.conf', '--name', '2024'],
      '--name "2024" has to have a letter or a - in it: dashboards take digits alone for a figure',
    ],
    [
      ['compare', '1=node a.js', 'node b.js'],
      'the name of a side: "1" has to have a letter or a - in it: dashboards take digits alone for a figure',
    ],
    [
      ['scenario', 'nginx-open-file-cache', '--max-time', '0'],
      '--max-time 0: give a time from 1 s to 24 h, such as 10s or 2m',
    ],
    [
      ['scenario', 'nginx-open-file-cache', '--max-time', '2s'],
      '--max-time 2 s is shorter than one round, which takes about 4 s: give more, or a shorter --duration',
    ],
    [
      ['scenario', 'nginx-open-file-cache', '--same-within', '0.01'],
      '--same-within 0.01: give a percentage from 0.01% to 50%, such as 1% or 0.5%',
    ],
    [['scenario', 'nginx-open-file-cache', '--same-within', '0%'], /^--same-within 0%: /],
    [['scenario', 'nginx-open-file-cache', '--same-within', '51%'], /^--same-within 51%: /],
    [
      ['scenario', 'nginx-open-file-cache', '--fail-if', 'slow'],
      'there is no --fail-if "slow": did you mean slower?',
    ],
    [['scenario', 'nginx-open-file-cache', '--metric', 'p100'], /^there is no --metric "p100"/],
    [
      ['scenario', 'h2o-vs-nginx-h2-rate', '--metric', 'rps'],
      /^--metric rps: vegeta .* sets requests\/s itself: take p50, p90, p99 or cpu, or a load without a rate$/,
    ],
    [['scenario', 'h2o-vs-nginx-h2-rate', '--arrivals', 'even'], /^there is no --arrivals "even"/],
    ...(
      [
        ['5ms', 'give p50, p90 or p99 and a time'],
        ['p100=5ms', 'give p50, p90 or p99 and a time'],
        ['p99', 'give p50, p90 or p99 and a time'],
        ['p99=5', 'give the time with its unit, us, ms or s'],
        ['p99=2m', 'give the time with its unit, us, ms or s'],
        ['p99=0ms', 'give a time from 1us to 60s'],
        ['p99=61s', 'give a time from 1us to 60s'],
        ['p99=ms', 'give a time from 1us to 60s'],
      ] as const
    ).map(([text, what]): [string[], string] => [
      ['scenario', 'nginx-open-file-cache', '--within', text],
      `--within ${text}: ${what}, such as p99=5ms`,
    ]),
    [
      ['scenario', 'nghttpd-img', '--within', 'p99=5ms'],
      /^--within: nghttpd-img has 3 load phases on one server, and a search has steps of its own: take another scenario$/,
    ],
    [
      ['scenario', 'nginx-open-file-cache', '--within', 'p99=5ms', '--metric', 'p50'],
      '--metric p50 and --within: a search compares the rates that it finds: leave --metric out',
    ],
    [
      ['scenario', 'nginx-open-file-cache', '--within', 'p99=5ms', '--rates', '1k'],
      '--rates and --within do not go together: one is for given rates, the other finds one',
    ],
    ...['0', '1k,,2k', '1.0005k', '-5', 'fast', '20m', '10000001'].map(
      (text): [string[], string] => [
        ['scenario', 'nginx-open-file-cache', '--rates', text],
        `--rates ${text}: give requests/s from 1 to 10,000,000 with commas between them, such as 500,1k,2.5k`,
      ],
    ),
    [
      ['scenario', 'nginx-open-file-cache', '--quick', '--precision', '1%'],
      '--quick and --precision do not go together: one ends after 4 rounds, the other goes on until it is known',
    ],
    [
      ['scenario', 'nghttpd-index', '--exact', '--quick'],
      '--quick and --exact do not go together: one is for short rounds, the other for those of the article',
    ],
    [
      ['scenario', 'nginx-open-file-cache', '--rates', '1k,1000'],
      '--rates 1k,1000 names a rate twice',
    ],
    [
      [
        'scenario',
        'nginx-open-file-cache',
        '--rates',
        Array.from({ length: 21 }, (_, index) => index + 1).join(','),
      ],
      '--rates names 21 rates: give at most 20',
    ],
    [
      ['scenario', 'nginx-open-file-cache', '--arrivals', 'poisson'],
      /^--arrivals poisson: are those of a rate, and no load has one: /,
    ],
    [
      ['scenario', 'nginx-open-file-cache', '--fail-if', 'slower', '--rounds', '3'],
      '--fail-if asks for a verdict, which takes 4 rounds: --rounds 4 or more',
    ],
    [
      ['scenario', 'nginx-open-file-cache', '--fail-if', 'slower', '--max-time', '10s'],
      '--fail-if asks for a verdict, which takes 4 rounds, about 14 s: give a --max-time above that',
    ],
    [
      ['scenario', 'nginx-open-file-cache', '--duration', 'abc'],
      '--duration abc: give a time from 0.1 s to 24 h, such as 10s or 2m',
    ],
    [
      ['scenario', 'nginx-open-file-cache', '--duration', '0'],
      '--duration 0: give a time from 0.1 s to 24 h, such as 10s or 2m',
    ],
    [['scenario', 'nginx-open-file-cache', '--duration', '-5s'], /^--duration/],
    [['scenario', 'nginx-open-file-cache', '--duration', '10 s'], /^--duration 10 s: /],
    [['scenario', 'nginx-open-file-cache', '--quick=yes'], '--quick takes no value'],
    [
      ['scenario', 'nginx-open-file-cache', '--server-cpus', 'x'],
      '--server-cpus x: write cores as 1 or 0-3,5',
    ],
    [
      ['scenario', 'nginx-open-file-cache', '--server-cpus', '4000'],
      /^--server-cpus: core 4000 is not there or not allowed/,
    ],
    [
      ['scenario', 'nginx-open-file-cache', '--server-cpus', '0', '--generator-cpus', '0'],
      /share core 0/,
    ],
    [
      ['scenario', 'nginx-open-file-cache', '--store', 'influxdb'],
      'there is no store "influxdb": did you mean influx?',
    ],
    [
      ['scenario', 'nginx-open-file-cache', '--store', 'none', '--influx', 'http://localhost:8086'],
      '--store none and --influx do not go together: leave one out',
    ],
    [
      ['scenario', 'nginx-open-file-cache', '--influx', 'localhost'],
      /^--influx takes a URL such as/,
    ],
    [
      ['scenario', 'nginx-open-file-cache', 'nginx-tcp-nopush'],
      'one scenario at a time: "nginx-tcp-nopush" is one word too many',
    ],
    [['bench', 'h3'], 'there is no experiment "h3": did you mean h2-body?'],
    [['bench', 'h2', '--round', '1'], 'there is no flag "--round": did you mean --rounds?'],
    [['bench', '--duration', '1.5'], '--duration 1.5: wrk knows whole seconds only'],
    [
      ['bench', '--duration', '0.5'],
      '--duration 0.5: give a time from 1 s to 24 h, such as 10s or 2m',
    ],
    [['bench', 'proof-ab'], 'there is no experiment "proof-ab": did you mean proof-aa?'],
    [
      ['bench', 'proof-aa', 'allocations'],
      'proof parts are measured in a command of their own: leave the other names out',
    ],
    [
      ['bench', 'proof', '--duration', '4s'],
      '--duration: proof parts measure runs as they are made by default',
    ],
    [['bench', 'proof', '--rounds', '0'], '--rounds 0: give a whole number from 1 to 100'],
  ])('%j', async (argv, message) => {
    expect(await main(argv)).toBe(2);
    expect(complained).toHaveLength(1);
    expect(complained[0]).toMatch(message);
    if (typeof message === 'string') expect(complained[0]).toBe(message);
    expect(printed).toEqual([]);
  });
});

test('without a name the scenarios are listed, one line each, and the flags', async () => {
  expect(await main(['scenario'])).toBe(0);
  const lines = printed.join('\n').split('\n');
  expect(lines.filter((line) => line.startsWith('  nginx-open-file-cache  '))).toHaveLength(1);
  expect(lines.filter((line) => line.startsWith('  --rounds N '))).toHaveLength(1);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(120);
});

test('--help comes before everything else', async () => {
  expect(await main(['scenario', 'no-such-scenario', '--help'])).toBe(0);
  for (const word of ['--help', '-h', '--version']) expect(await main([word])).toBe(0);
  expect(await main(['scenario', '-h'])).toBe(0);
  expect(printed).toHaveLength(5);
  expect(printed[3]).toMatch(/^\d+\.\d+\.\d+$/);
});

describe('options', () => {
  test('have defaults', () => {
    vi.stubEnv('INIT_CWD', '/home/anna');
    expect(readScenarioOptions(['nginx-open-file-cache'])).toEqual({
      name: 'nginx-open-file-cache',
      help: false,
      quick: false,
      exact: false,
      store: 'local',
      out: '/home/anna/results',
      json: false,
      hosts: [],
      exports: [],
    });
    expect(readScenarioOptions(['--quick']).quick).toBe(true);
  });

  test('are all read; paths are those of the folder the person stands in', () => {
    vi.stubEnv('INIT_CWD', '/home/anna');
    expect(
      readScenarioOptions([
        '--rounds=8',
        '--duration',
        '1500ms',
        '--variants',
        'b,a',
        '--exact',
        '--server-cpus',
        '2-3',
        '--generator-cpus',
        '0,1',
        '--influx',
        'http://localhost:8086',
        '--out',
        'here',
        '--json',
        '--max-time',
        '10m',
        '--same-within',
        '0.5%',
        '--fail-if',
        'different',
        '--metric',
        'p90',
        '--arrivals',
        'poisson',
        '--host',
        'a.org',
        '--host',
        '[2001:db8::1]',
        '--export-csv',
        'a.csv',
        '--export-markdown',
        '/b.md',
        'name',
      ]),
    ).toEqual({
      name: 'name',
      help: false,
      rounds: 8,
      maxTimeSeconds: 600,
      sameWithin: 0.005,
      failIf: { gates: [{ text: 'different', verdict: 'different' }], successRatio: 0.99 },
      metric: 'p90',
      arrivals: 'poisson',
      durationSeconds: 1.5,
      variants: ['b', 'a'],
      quick: false,
      exact: true,
      serverCpus: [2, 3],
      generatorCpus: [0, 1],
      store: { url: 'http://localhost:8086' },
      out: '/home/anna/here',
      json: true,
      hosts: ['a.org', '[2001:db8::1]'],
      exports: [
        { flag: 'export-markdown', file: '/b.md' },
        { flag: 'export-csv', file: '/home/anna/a.csv' },
      ],
    });
  });

  test('--within and --rates are in milliseconds and requests/s', () => {
    expect(readScenarioOptions(['--within', 'p50=250us'])).toMatchObject({
      within: { metric: 'p50', ms: 0.25 },
    });
    expect(readScenarioOptions(['--within', 'p90=1.5s'])).toMatchObject({
      within: { metric: 'p90', ms: 1500 },
    });
    expect(readScenarioOptions(['--rates', '2k, 500,1.5k'])).toMatchObject({
      rates: [500, 1500, 2000],
    });
    expect(readScenarioOptions(['--rates', '1.001k,2.3k,8192.001k'])).toMatchObject({
      rates: [1001, 2300, 8_192_001],
    });
  });

  test('--precision leaves their number to the verdicts', () => {
    expect(readScenarioOptions(['--precision', '1.5%'])).toMatchObject({ precision: 0.015 });
    expect(readScenarioOptions(['--precision', '1.5%'])).not.toHaveProperty('rounds');
    expect(() => readScenarioOptions(['--precision', '1%', '--rounds', '5'])).toThrow(
      new UserError('--rounds and --precision do not go together: leave one out', 2),
    );
    for (const text of ['1', '0%', '60%', 'narrow']) {
      expect(() => readScenarioOptions(['--precision', text])).toThrow(
        new UserError(
          `--precision ${text}: give a percentage from 0.01% to 50%, such as 1% or 0.5%`,
          2,
        ),
      );
    }
  });

  test.each([
    ['10', 10],
    ['10s', 10],
    ['2m', 120],
    ['0.5h', 1800],
    ['250ms', 0.25],
    ['24h', 86_400],
  ])('--duration %s is %f s', (text, seconds) => {
    expect(readScenarioOptions(['--duration', text]).durationSeconds).toBeCloseTo(seconds, 9);
  });
});
