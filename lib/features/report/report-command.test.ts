// npm run report.
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test, vi } from 'vitest';
import { additions } from '../../cli/main.ts';
import { main } from '../../cli/main.ts';
import { UserError } from '../../errors.ts';
import { htmlReport } from '../../report/html/run-page.ts';
import type { Result } from '../../result/result.ts';
import { checkResult, resultJson } from '../../result/result-file.ts';
import {
  delayed,
  networkUse,
  overLink,
  phaseOverLink,
  traffic,
} from '../../../test/fixtures/link.ts';
import { newFolder } from '../../../test/fixtures/new-folder.ts';
import { compared, openFileCache, result, workers } from '../../../test/fixtures/result.ts';

const both = result([workers, openFileCache]);
const text = JSON.stringify(both);
const headline = 'open-file-cache is 33 % faster than workers';

const { mkdirSync, readFileSync, symlinkSync, writeFileSync } = fs;

let home: string;
let printed: string[];
let complained: string[];
beforeEach(() => {
  home = newFolder();
  vi.stubEnv('INIT_CWD', home);
  [printed, complained] = [[], []];
  vi.spyOn(console, 'log').mockImplementation((text: string) => void printed.push(text));
  vi.spyOn(console, 'error').mockImplementation((text: string) => void complained.push(text));
});

function aRun(name: string, text = JSON.stringify({ ...both, run: name }), where = 'results') {
  const folder = join(home, where, name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'result.json'), text);
  return folder;
}

async function made(...args: string[]) {
  expect(await main(['report', ...args]), complained.join()).toBe(0);
  return readFileSync(printed[0] ?? '', 'utf8');
}

async function refused(args: string[], code: number) {
  complained = [];
  expect(await main(['report', ...args])).toBe(code);
  expect(printed).toEqual([]);
  expect(complained).toEqual([expect.stringMatching(/^.*$/)]);
  return complained[0] ?? '';
}

test.each([
  ['one', 'results/one/report.html'],
  ['./results/one/result.json', 'results/one/report.html'],
  ['mine.json', 'mine.html'],
  ['one --out new/page.html', 'new/page.html'],
  ['two --results elsewhere', 'elsewhere/two/report.html'],
])('the page of %s is %s', async (args, page) => {
  const folder = aRun('one');
  // Two rounds with very different ratios have such an interval.
  aRun('two', JSON.stringify(compared(both, { ci95: [0, Number.MAX_VALUE] })), 'elsewhere');
  writeFileSync(join(home, 'mine.json'), text);
  writeFileSync(join(folder, 'report.html'), 'old');
  expect(await made(...args.split(' '))).toContain(headline);
  expect(printed).toEqual([join(home, page)]);
  expect(fs.readdirSync(folder).sort()).toEqual(['report.html', 'result.json']);
});

test('a page replaces the target of a link, but not a pipe', async () => {
  aRun('one');
  execFileSync('mkfifo', [join(home, 'pipe')]);
  expect(await refused(['one', '--out', 'pipe'], 1)).toMatch(/pipe: it is a pipe, .*; --out names/);
  expect(fs.statSync(join(home, 'pipe')).isFIFO()).toBe(true);
  symlinkSync('page.html', join(home, 'link.html'));
  writeFileSync(join(home, 'page.html'), '');
  await made('one', '--out', 'link.html');
  expect(fs.readlinkSync(join(home, 'link.html'))).toBe('page.html');
  expect(readFileSync(join(home, 'page.html'), 'utf8')).toContain(headline);
});

test('a page does not replace the result that it shows', async () => {
  aRun('one', text);
  const file = join(home, 'results/one/result.json');
  expect(await refused(['one', '--out', file], 1)).toMatch(
    /: another file is there, which bakeoff did not write: .*; --out names/,
  );
  expect(readFileSync(file, 'utf8')).toBe(text);
});

test('names of folders are printed without characters that control the terminal', async () => {
  const odd = 'one\u001b[31m\u202eown';
  aRun(odd, text);
  expect(await main(['report'])).toBe(0);
  expect(printed[0]?.split('\n')).toContain('  one [31m own');
  printed = [];
  expect(await main(['report', odd])).toBe(0);
  expect(printed).toEqual([join(home, 'results/one [31m own/report.html')]);
});

test('--history shows all whole runs of a scenario, and no others', async () => {
  const [first] = both.comparisons;
  const run = (day: string, scenario: string, changes: Partial<Result>) => {
    const name = `2026-11-${day}T08-00-00-${scenario}`;
    const comparisons = [{ ...first, roundRatios: [1.2, 1.22, 1.18, 1.21] }];
    aRun(name, JSON.stringify({ ...both, scenario, run: name, comparisons, ...changes }));
  };
  const { environment } = both;
  run('01', 'mine', { quick: false, environment: { ...environment, bootId: 'a' } });
  run('02', 'mine', { quick: false, environment: { ...environment, bootId: 'b' } });
  run('03', 'mine', { quick: true });
  run('04', 'other', { quick: false });
  run('10', 'mine', {
    quick: false,
    comparisons: [{ ...first, verdict: 'none', roundRatios: [1.2, 1.22, 1.18, 1.21] }],
  } as Partial<Result>);
  expect(await main(['report', '--history', 'mine']), complained.join()).toBe(0);
  expect(printed[0]).toBe('open-file-cache against workers, requests/s:');
  expect(
    printed.filter((line) => line.startsWith('2026-')).map((line) => line.slice(8, 10)),
  ).toEqual(['01', '02']);
  expect(printed.join('\n')).toMatch(/^Over 2 boots: \+20 % \[/m);
  expect(complained).toEqual(['left out: 1 run with --quick, 1 run without a verdict']);
  const kept = join(home, 'results', '2026-11-01T08-00-00-mine');
  const copy = join(home, 'results', '2026-11-09T08-00-00-mine');
  fs.cpSync(kept, copy, { recursive: true });
  const shown = printed.join('\n');
  [printed, complained] = [[], []];
  expect(await main(['report', '--history', 'mine']), complained.join()).toBe(0);
  expect(printed.join('\n')).toBe(shown);
  expect(complained).toEqual([
    'left out: 1 run with --quick, 1 run without a verdict, 1 run that another folder has too',
  ]);
  fs.rmSync(copy, { recursive: true });
  run('05', 'mine', { state: 'partial' });
  run('06', 'mine', {
    comparisons: [{ ...first, roundRatios: [1.2, 0, 1.2, 1.2] }],
  } as Partial<Result>);
  aRun('2026-11-07T08-00-00-mine', text.slice(0, 1000));
  [printed, complained] = [[], []];
  expect(await main(['report', '--history', 'mine']), complained.join()).toBe(0);
  expect(complained).toEqual([
    expect.stringMatching(
      /^left out: 1 run with --quick, 1 run without a verdict, 1 run that ended early, 2 runs without a readable result \(\S+2026-11-06\S+json .*: comparisons\[0\]\.roundRatios\[1\] 0 has to be above 0, .*\)$/,
    ),
  ]);
  printed = [];
  run('08', 'quick', { quick: true });
  expect(await refused(['--history', 'quick'], 2)).toMatch(
    /^no complete run of quick in \S+ compares anything \(left out: 1 run with --quick\)$/,
  );
  expect(await refused(['--history', 'min'], 2)).toMatch(/"min": did you mean mine\?$/);
  expect(await refused(['--history', 'mine', 'one'], 2)).toMatch(/leave out "one"$/);
  expect(await refused(['--history', 'mine', '--results', 'none'], 2)).toMatch(
    /^there are no runs/,
  );
});

test('reports a missing run in one line, with the most similar name', async () => {
  expect(await refused(['one'], 2)).toMatch(
    /^there is no run \S+\/one: name one in \S+results, or/,
  );
  aRun('2026-nginx');
  expect(await refused(['2026-nginy'], 2)).toMatch(
    /^there is no run in .*\/results "2026-nginy": did you mean 2026-nginx\?$/,
  );
  mkdirSync(join(home, 'results', 'empty'));
  expect(await refused(['empty'], 2)).toBe(
    `${home}/results/empty has no result.json: name the folder of a run`,
  );
  expect(await refused(['2026-nginx', 'another'], 2)).toBe(
    'one run at a time: "another" is one word too many',
  );
});

test.each([
  ['half a file', text.slice(0, 1000), 'is not whole JSON: name a run that ended'],
  ['a foreign file', '{"name":"server-bakeoff"}', 'is not a result of bakeoff'],
  [
    'a newer schema',
    text.replace('"schema":1', '"schema":2'),
    ': schema 2 is of a newer bakeoff, this one reads 1',
  ],
  [
    'an older form',
    text.replace('"looks"', '"was"'),
    'is of an earlier bakeoff, or was changed: looks is missing: run it again with this one',
  ],
  [
    'more rounds than a run can have',
    JSON.stringify(compared(both, { roundRatios: Array(100_000).fill(1.1) })),
    'comparisons[0].roundRatios has more than 1000',
  ],
])('reports an invalid result in one line: %s', async (_, text, message) => {
  const file = join(aRun('odd', text), 'result.json');
  const line = await refused(['odd'], 1);
  expect(line.startsWith(file)).toBe(true);
  expect(line).toContain(message);
});

const number = 'has to be';
const names = 'may have a-z, 0-9 and - only';
test.each([
  ['"rps":{"median":', '"rps":{"median":1e999,"was":', `rps.median Infinity ${number} from 0 to`],
  ['"roundRatios":[', '"roundRatios":[0,', `roundRatios[0] 0 ${number} above 0`],
  ['"name":"workers"', '"name":"../x"', `variants[0].name "../x" ${names}`],
  ['"name":"nginx"', '"name":"../x"', 'variants[0].server.name "../x" may have no / in it'],
])('reports the invalid field in one line: %s as %s', async (was, is, message) => {
  aRun('odd', text.replace(both.run, 'odd').replace(was, is));
  expect(await refused(['odd'], 1)).toContain(message);
});

test('reports an unreadable file in one line', async () => {
  const isRoot = process.getuid?.() === 0;
  const pipe = join(home, 'results', 'pipe');
  mkdirSync(join(pipe, '..', 'deep', 'result.json'), { recursive: true });
  mkdirSync(pipe);
  execFileSync('mkfifo', [join(pipe, 'result.json')]);
  fs.truncateSync(join(aRun('long'), 'result.json'), 2 ** 31);
  fs.chmodSync(join(aRun('closed'), 'result.json'), 0);
  for (const [name, why] of [
    ['pipe', 'it is a pipe, socket or device, not a file'],
    ['deep', 'it is a folder'],
    ['long', 'it has more than 256 MB'],
    ...(isRoot ? [] : [['closed', 'you may not read it']]),
  ] as const)
    expect(await refused([name ?? ''], 1)).toBe(
      `cannot read ${home}/results/${name}/result.json: ${why}`,
    );
});

test('an impossible name, and circular links', async () => {
  expect(await refused(['x'.repeat(5000)], 2)).toMatch(/^there is no run /);
  symlinkSync('circle', join(home, 'circle'));
  expect(await refused(['circle'], 2)).toMatch(/^there is no run /);
  aRun('one');
  expect(await refused(['one', '--out', 'circle/page.html'], 1)).toMatch(
    /^cannot write the page to .*: links in its path lead in a circle; --out names another file$/,
  );
});

test('a result that lacks a field is refused, or shown without it', async () => {
  const limited = { delayMs: 100, queuePackets: 1000, bytesPerSecond: 1e6, lossShare: 0.1 };
  const use = networkUse(800_000, { toServer: traffic(100, 10, 138) });
  const linked = overLink(
    'link',
    [1, 2].map(() => phaseOverLink(800_000, use)),
    {
      against: 'workers',
      published: { rps: 700_324.14, packetsPerRequest: 9 },
      network: { ...delayed, toServer: limited },
    },
  );
  const whole = result([{ ...workers, rounds: workers.rounds.slice(0, 2) }, linked], {
    kernelSettings: [
      { side: 'server', name: 'a', value: '1', variants: ['link'], problem: 'it is gone' },
    ],
  });
  // Rounds and histogram bars have the same fields, so the last one is enough.
  const alike = new Set(['rounds', 'histogram']);
  const places = (value: unknown, at: readonly string[]): string[][] => {
    if (typeof value !== 'object' || value === null) return [];
    const last = Object.keys(value).at(-1);
    return Object.entries(value).flatMap(([key, inner]) => [
      [...at, key],
      ...(alike.has(at.at(-1) ?? '') && key !== last ? [] : places(inner, [...at, key])),
    ]);
  };
  const all = places(whole, []);
  expect(all.length).toBeGreaterThan(500);
  let shown = 0;
  for (const place of all) {
    const key = place.at(-1) as string;
    const owner = place
      .slice(0, -1)
      .reduce(
        (value, key) => value[key] as Record<string, unknown>,
        whole as unknown as Record<string, unknown>,
      );
    const { [key]: field } = owner;
    delete owner[key];
    const odd = JSON.stringify(whole);
    owner[key] = field;
    let checked: Result;
    try {
      checked = checkResult(odd, 'file');
    } catch (error) {
      expect(error).toBeInstanceOf(UserError);
      continue;
    }
    shown++;
    await expect(
      htmlReport(checked, additions.contributionsTo(checked), []),
      place.join('.'),
    ).resolves.toContain('</html>');
  }
  expect(shown).toBeGreaterThan(30);
}, 240_000);

test('unknown fields are dropped, missing fields count as not measured', () => {
  const complete = result([workers]);
  const newer = JSON.stringify({ ...complete, ofTomorrow: { deep: [1] } });
  expect(checkResult(newer.replaceAll('"p50":', '"ofTomorrow":[1],"p50":'), 'file')).toEqual(
    complete,
  );

  const unknown = {
    hung: 0,
    longestGapMs: 0,
    monotonicMs: [0, 0],
    turns: null,
    idleCpuShare: null,
  };
  const older = JSON.stringify(complete, (key, value: unknown) =>
    [...Object.keys(unknown), 'histogram'].includes(key) ? undefined : value,
  );
  expect(checkResult(older, 'file').variants[0]?.rounds[1]?.phases[0]).toMatchObject({
    ...unknown,
    latencyMs: { histogram: [] },
    requests: 604_300,
  });
});

test('a run of before is shown whose load other hosts made at the times of a log', async () => {
  const complete = result([workers]);
  const machine = { address: '192.0.2.1', architecture: 'x64', cpuModel: 'c', kernel: 'k' };
  const generatorHosts = [{ ...machine, name: 'me@gen1', cores: 2, memoryBytes: 1 }];
  const older = JSON.stringify({
    ...complete,
    environment: { ...complete.environment, generatorHosts },
    variants: complete.variants.map((variant) => ({
      ...variant,
      load: { ...variant.load, arrivals: 'logged', rate: 10, requests: 80 },
    })),
  });
  expect(
    await htmlReport(
      checkResult(older, 'file'),
      additions.contributionsTo(checkResult(older, 'file')),
      [],
    ),
  ).toContain('on me@gen1 (2 cores)');
});

test('a result file has each histogram on one line, and supports any text', () => {
  expect(resultJson(both)).toMatch(/^ +"histogram": \[\[.*\]\],?$/m);
  expect(resultJson(both)).not.toMatch(/"histogram": \[$/m);
  for (const title of ['\u{e000}', '\n  "histogram": "[1]",\n']) {
    const of = { ...both, title, warnings: [title] };
    expect(JSON.parse(resultJson(of))).toEqual(of);
  }
});

const ofFirstRound = () => {
  const folder = join(aRun('one'), 'round-1', 'workers');
  mkdirSync(folder, { recursive: true });
  return folder;
};

test('configs next to a result are shown if they belong to the run', async () => {
  const folder = ofFirstRound();
  writeFileSync(join(folder, 'kept'), 'worker_processes 7;');
  symlinkSync('kept', join(folder, 'nginx.conf'));
  expect(await made('one')).toContain('worker_processes 7;');
});

test.each(['nginx.conf', '.', '..'])(
  'configs next to a result are not shown if a link leaves the folder: %s',
  async (part) => {
    const secret = 'a secret of this machine';
    const outside = join(home, 'outside', 'workers');
    mkdirSync(outside, { recursive: true });
    writeFileSync(join(outside, 'nginx.conf'), secret);
    const link = join(ofFirstRound(), part);
    fs.rmSync(link, { recursive: true, force: true });
    symlinkSync(join(outside, part), link);
    expect(await made('one')).not.toContain(secret);
  },
);

test('configs next to a result are skipped if they are pipes', async () => {
  execFileSync('mkfifo', [join(ofFirstRound(), 'nginx.conf')]);
  await made('one');
});
