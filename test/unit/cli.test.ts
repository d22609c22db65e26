// Usage errors exit with code 2 and one line; options and help.
import { beforeEach, expect, test, vi } from 'vitest';
import { noAdditions } from '../fixtures/additions.ts';
import { readScenarioOptions } from '../../lib/cli/scenario.ts';
import { main } from '../../lib/cli/main.ts';
import { expectGroupedHelp } from '../fixtures/help.ts';

const printed: string[] = [];
const complained: string[] = [];

beforeEach(() => {
  printed.length = 0;
  complained.length = 0;
  vi.stubEnv('INIT_CWD', '/home/me');
  vi.spyOn(console, 'log').mockImplementation((text: string) => void printed.push(text));
  vi.spyOn(console, 'error').mockImplementation((text: string) => void complained.push(text));
});

async function refused(args: string[], message: RegExp) {
  expect(await main(args)).toBe(2);
  expect(complained).toEqual([expect.stringMatching(message)]);
  expect(complained[0]).not.toContain('\n');
  expect(printed).toEqual([]);
}

test.each([
  ['scenari', /^there is no command "scenari": did you mean scenario\?$/],
  ['scenario ngin-open', /"ngin-open": did you mean nginx-open-file-cache\?$/],
  ['scenario http1-vs-h2-small-file --variants nginx-spdy', /nginx-spdy: published only/],
  [
    'scenario h2o-vs-nginx-h2-rate --metric rps',
    /^--metric rps: vegeta .* take p50, p90, p99, cpu/,
  ],
  ['scenario nghttpd-index --exact --quick', /^--quick and --exact do not go together/],
  ['scenario --k6-script', /^--k6-script needs a scenario/],
  ['scenario aa --k6-script --json', /^--k6-script and --json do not go together/],
  ['scenario aa --k6-script /not/there.js', / cannot be written: its folder is not there$/],
  ['scenario aa --k6-script --metric cpu', /^--metric cpu: a k6 script knows no CPU time/],
  ['scenario nghttpd-img --k6-script', /^--k6-script: nghttpd-img has several load phases/],
  ['compare a=a.conf b=b.conf --prepare=', /^--prepare needs a value: --prepare 'make -s'$/],
  ['compare a.conf b.conf --fail-if=', /^--fail-if needs a value: --fail-if 'slower>3%'$/],
  ['compare a.conf b.conf --pace 2x', /^--pace is gone: a log's requests come by /],
  [
    'compare a.conf b.conf --connections 50',
    /^there is no flag "--connections": give it in the load, such as --load "wrk -c 50"$/,
  ],
  ['compare a.conf b.conf --vus 10', /--load "wrk -c 50"$/],
  ['compare a.conf b.conf --foo', /^there is no flag "--foo": --help lists them$/],
  [
    'compare haproxy -f haproxy.cfg a.conf',
    /^there is no flag "-f": a command and its arguments are one side, in quotes: 'haproxy -f …'$/,
  ],
  ['compare caddy run --config x', /are one side, in quotes: 'caddy run --config …'$/],
  [
    'compare a.conf caddy --fial-if slower',
    /^there is no flag "--fial-if": did you mean --fail-if\?$/,
  ],
  ['compare nginx -c a.conf b.conf', /are one side, in quotes: 'nginx -c …'$/],
  ['compare a.conf b.conf --name ../x', /^--name "\.\.\/x" may have a-z, 0-9 and - only/],
  ['compare 1=a.conf b.conf', /^the name of a side: "1" has to have a letter/],
  ['compare Old_1=a.conf b.conf', /^the name of a side: "Old_1" may have a-z, 0-9 and - only, /],
])('%s is refused', (line, message) => refused(line.split(' '), message));

test.each([
  ['--round 3', /^there is no flag "--round": did you mean --rounds\?$/],
  ['--generator-host a', /^--generator-host is gone: this machine makes the load, or /],
  ['--variants worker', /"worker": did you mean workers\?$/],
  ['--rounds --quick', /^--rounds needs a value: --rounds N$/],
  ['--rounds 3 --rounds 4', /^--rounds is given twice$/],
  ['--rounds 2.5', /2\.5: give a whole number from 1 to 1000$/],
  ['--same-within 0.01', /^--same-within 0\.01: give a percentage from 0\.01% to 50%/],
  ['--precision 1% --quick', /^--quick and --precision do not go together/],
  ['--metric p100', /^there is no --metric "p100"/],
  ['--arrivals poisson', /^--arrivals poisson needs a load at a rate: give one such as /],
  ['--warmup warm', /^--warmup warm: give a time from 0 s to 24 h, such as 10s or 2m$/],
  ['--max-time 0', /^--max-time 0: give a time from 1 s to 24 h, such as 10s or 2m$/],
  ['--quick=yes', /^--quick takes no value$/],
  ['--server-cpus 4000', /^--server-cpus: core 4000 is not there/],
])('scenario %s is refused', (line, message) =>
  refused(['scenario', 'nginx-open-file-cache', ...line.split(' ')], message),
);

const shownBy = async (...args: string[]) => {
  expect(await main(args)).toBe(0);
  return printed.splice(0).join('\n').split('\n');
};

test('without a name, lists scenarios with their duration on this machine', async () => {
  const lines = await shownBy('scenario');
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(120);
  const secondsIn = (text = '') => {
    const [, number, unit] = /(?:^|[ ,]) *(\d+) (min|s)\b/.exec(text) ?? [];
    return Number(number) * (unit === 'min' ? 60 : 1);
  };
  const timeOf = (all: readonly string[], name: string) =>
    secondsIn(all.find((line) => line.startsWith(`  ${name} `))?.slice(27, 36));
  const [few, many] = [timeOf(lines, 'nginx-open-file-cache'), timeOf(lines, 'h2o-vs-nginx')];
  expect(many).toBeGreaterThan(2 * few);
  expect(few).toBeGreaterThan(20);
  const quick = await shownBy('scenario', '--quick');
  expect(timeOf(quick, 'nginx-open-file-cache')).toBeLessThan(few / 2);
  // An article run uses --quick for scenarios of more than 5 min.
  const sum = secondsIn(/^002 .*(, \d+ (?:min|s))$/m.exec(lines.join('\n'))?.[1]);
  expect(sum).toBeLessThan(timeOf(lines, 'nghttpd-img'));
  expect(sum).toBeGreaterThan(timeOf(lines, 'nghttpd-index'));
});

test.each(['scenario', 'compare'])(
  'the help of %s has groups, and the usual one fits a screen',
  async (name) => expectGroupedHelp((...more) => shownBy(name, '--help', ...more)),
);

test.each([
  ['009', /^there is no article 009: there are 000, 001, .* all of them by all$/],
  ['000,001', /^one scenario or article at a time: npm run scenario -- 000 && .* scenario -- 001$/],
  ['aa --resume', /^--resume is for an article, such as 000, and aa is one scenario$/],
  ['000 --variants a', /^--variants is of one scenario, and an article has several: leave it out$/],
])('scenario %s is refused', (line, message) => refused(['scenario', ...line.split(' ')], message));

test('--help takes precedence over all other arguments', async () => {
  expect(await main(['scenario', 'no-such-scenario', '--help'])).toBe(0);
  for (const word of ['--help', '-h', '--version']) expect(await main([word])).toBe(0);
  expect(await main(['scenario', '-h'])).toBe(0);
  expect(printed).toHaveLength(5);
  expect(printed[3]).toMatch(/^\d+\.\d+\.\d+$/);
});

test('options have defaults', () => {
  expect(readScenarioOptions(['nginx-open-file-cache'], noAdditions)).toMatchObject({
    quick: false,
    exact: false,
    out: '/home/me/results',
  });
});

test('the command uses all options', () => {
  const line =
    '--rounds=8 --duration 1500ms --variants b,a --exact --server-cpus 2-3 --generator-cpus 0,1 ' +
    '--out here --json --max-time 10m --same-within 0.5% --fail-if different ' +
    '--metric p90 --arrivals poisson --host a.org --host [2001:db8::1] --export-csv a.csv --export-markdown /b.md name';
  const {
    sink: _1,
    contributionsTo: _2,
    templates: _3,
    ...options
  } = readScenarioOptions(line.split(' '), noAdditions);
  expect(options).toEqual({
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
    flags: expect.any(Map),
    examined: 'all',
    planners: [],
    observers: [],
    examiners: [],
    exact: true,
    serverCpus: [2, 3],
    generatorCpus: [0, 1],
    out: '/home/me/here',
    json: true,
    hosts: ['a.org', '[2001:db8::1]'],
    exports: [
      { flag: 'export-markdown', file: '/b.md' },
      { flag: 'export-csv', file: '/home/me/a.csv' },
    ],
  });
});

test.each([
  [['--precision', '1.5%'], { precision: 0.015 }],
  [['--duration', '0.5h'], { durationSeconds: 1800 }],
  [['--warmup', '1ms'], { warmupSeconds: 0.001 }],
  [['--warmup', '0'], { warmupSeconds: 0 }],
])('options: %j is %j', (args, options) => {
  expect(readScenarioOptions(args, noAdditions)).toMatchObject(options);
});
