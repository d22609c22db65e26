// npm run report: which run it finds, where the page goes, and what it says of files that are none.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { MeasuredVariant } from '../../lib/analysis/verdict.ts';
import { main } from '../../lib/cli/main.ts';
import { UserError } from '../../lib/errors.ts';
import { checkResult, resultJson, type Result } from '../../lib/result/result.ts';
import { htmlReport } from '../../lib/report/html/run-page.ts';
import { delayed, networkUse, traffic } from '../fixtures/link.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { openFileCache, result, workers } from '../fixtures/result.ts';

const both = result([workers, openFileCache]);

let home: string;
let printed: string[];
let complained: string[];
beforeEach(() => {
  home = newFolder();
  vi.stubEnv('INIT_CWD', home);
  printed = [];
  complained = [];
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

/** Makes the folder of a run in `results`. */
function aRun(name: string, text = JSON.stringify({ ...both, run: name })): string {
  const folder = join(home, 'results', name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'result.json'), text);
  return folder;
}

async function refused(args: string[], code: number): Promise<string> {
  expect(await main(['report', ...args])).toBe(code);
  expect(printed).toEqual([]);
  expect(complained).toHaveLength(1);
  expect(complained[0]).not.toContain('\n');
  return complained[0] ?? '';
}

test('what is no file is not replaced by the page, and a link stays one', async () => {
  aRun('one');
  execFileSync('mkfifo', [join(home, 'pipe')]);
  expect(await refused(['one', '--out', 'pipe'], 1)).toBe(
    `cannot write the page to ${join(home, 'pipe')}: it is a pipe, socket or device: name a file`,
  );
  expect(statSync(join(home, 'pipe')).isFIFO()).toBe(true);
  complained = [];
  mkdirSync(join(home, 'kept'));
  symlinkSync('kept/page.html', join(home, 'link.html'));
  writeFileSync(join(home, 'kept/page.html'), '');
  expect(await main(['report', 'one', '--out', 'link.html']), complained.join()).toBe(0);
  expect(readlinkSync(join(home, 'link.html'))).toBe('kept/page.html');
  expect(readFileSync(join(home, 'kept/page.html'), 'utf8')).toContain(
    'open-file-cache is 33\u00a0% faster than workers',
  );
});

describe('one run', () => {
  test.each([
    ['its name', 'one'],
    ['its folder', 'results/one'],
    ['its result.json', './results/one/result.json'],
  ])('by %s: its page is made again', async (_, word) => {
    const folder = aRun('one');
    writeFileSync(join(folder, 'report.html'), 'old');
    expect(await main(['report', word]), complained.join()).toBe(0);
    expect(printed).toEqual([join(folder, 'report.html')]);
    expect(readFileSync(join(folder, 'report.html'), 'utf8')).toContain(
      'open-file-cache is 33\u00a0% faster than workers',
    );
    expect(readdirSync(folder).sort()).toEqual(['report.html', 'result.json']);
  });

  test('by a file that --json gave: the page has its name', async () => {
    writeFileSync(join(home, 'mine.json'), JSON.stringify(both));
    expect(await main(['report', 'mine.json'])).toBe(0);
    expect(printed).toEqual([join(home, 'mine.html')]);
  });

  test('goes to --out, whose folder is made', async () => {
    aRun('one');
    expect(await main(['report', 'one', '--out', 'new/page.html'])).toBe(0);
    expect(readFileSync(join(home, 'new', 'page.html'), 'utf8')).toContain('<!doctype html>');
    expect(existsSync(join(home, 'results', 'one', 'report.html'))).toBe(false);
  });

  test('is found below --results', async () => {
    mkdirSync(join(home, 'elsewhere', 'two'), { recursive: true });
    writeFileSync(join(home, 'elsewhere', 'two', 'result.json'), JSON.stringify(both));
    expect(await main(['report', 'two', '--results', 'elsewhere'])).toBe(0);
    expect(printed).toEqual([join(home, 'elsewhere', 'two', 'report.html')]);
  });
});

test('several runs are one page in the results', async () => {
  aRun('one');
  aRun('two');
  expect(await main(['report', 'one', 'two'])).toBe(0);
  const file = join(home, 'results', 'report-one+two.html');
  expect(printed).toEqual([file]);
  expect(readFileSync(file, 'utf8')).toContain('2 runs side by side');
});

test('a page of very many runs has a name that a file may have', async () => {
  const names = Array.from(
    { length: 12 },
    (_, index) => `2026-11-20T08-15-${10 + index}-nginx-open-file-cache`,
  );
  for (const name of names) aRun(name);
  expect(await main(['report', ...names])).toBe(0);
  expect(printed).toEqual([join(home, 'results', `report-${names[0]}+11-more.html`)]);
});

test('an interval of two rounds far apart is read as it was written', async () => {
  aRun(
    'wide',
    JSON.stringify({
      ...both,
      run: 'wide',
      comparisons: both.comparisons.map((one) => ({ ...one, ci95: [0, Number.MAX_VALUE] })),
    }),
  );
  expect(await main(['report', 'wide'])).toBe(0);
});

test('without a run the runs are listed', async () => {
  aRun('one');
  expect(await main(['report'])).toBe(0);
  expect(printed[0]?.split('\n')).toContain('  one');
});

describe('says in one line', () => {
  test('which run is not there, and the nearest', async () => {
    aRun('2026-nginx');
    aRun('2026-h2o');
    expect(await refused(['2026-nginy'], 2)).toMatch(
      /^there is no run in .*\/results "2026-nginy": did you mean 2026-nginx\?$/,
    );
  });

  test('that there are no runs at all', async () => {
    expect(await refused(['one'], 2)).toBe(
      `there is no run ${home}/one: name one in ${home}/results, or a run's folder`,
    );
  });

  test('that a folder has no result', async () => {
    mkdirSync(join(home, 'results', 'empty'), { recursive: true });
    expect(await refused(['empty'], 2)).toBe(
      `${home}/results/empty has no result.json: name the folder of a run`,
    );
  });

  test.each([
    [
      'half a file',
      JSON.stringify(both).slice(0, 1000),
      /is not whole JSON: name a run that ended/,
    ],
    ['nothing', '', /is not whole JSON/],
    ['a foreign file', '{"name":"server-bakeoff","version":"0.1.0"}', /is no result of bakeoff/],
    ['a list', '[1,2]', /is no result of bakeoff/],
    [
      'a newer schema',
      JSON.stringify({ ...both, schema: 2 }),
      /: schema 2 is of a newer bakeoff, this one reads 1/,
    ],
    [
      'an older form',
      JSON.stringify({ ...both, looks: undefined }),
      /is of an earlier bakeoff, or was changed: looks is missing: run it again with this one$/,
    ],
    [
      'a wrong field',
      JSON.stringify({ ...both, environment: { ...both.environment, bootedAt: 'yesterday' } }),
      /: environment\.bootedAt "yesterday" has to be an instant/,
    ],
  ])('what is wrong with %s', async (_, text, words) => {
    const file = join(aRun('odd', text), 'result.json');
    const line = await refused(['odd'], 1);
    expect(line.startsWith(file)).toBe(true);
    expect(line).toMatch(words);
  });

  test.each<[string, (text: string) => string, string]>([
    [
      'endless',
      (text) => text.replace('"rps":{"median":', '"rps":{"median":1e999,"was":'),
      'variants[0].rps.median Infinity has to be from 0 to 9007199254740991',
    ],
    [
      'huge',
      (text) => text.replace('"requests":604000', '"requests":1e300'),
      'variants[0].rounds[0].phases[0].requests 1e+300 has to be a whole number from 0 to 9007199254740991',
    ],
    [
      'negative',
      (text) => text.replace('"inFlight":0', '"inFlight":-1'),
      'variants[0].rounds[0].phases[0].inFlight -1 has to be a whole number from 0 to 9007199254740991',
    ],
    [
      'no number',
      (text) => text.replace('"seconds":10', '"seconds":"NaN"'),
      'variants[0].rounds[0].phases[0].seconds has to be a number',
    ],
    [
      'of round 1e300',
      (text) => text.replace('"round":1,', '"round":1e300,'),
      'variants[0].rounds[0].round 1e+300 has to be a whole number from 1 to 10000',
    ],
  ])('which figure is %s', async (_, change, words) => {
    const folder = aRun('odd', change(JSON.stringify({ ...both, run: 'odd' })));
    expect(await refused(['odd'], 1)).toBe(
      `${folder}/result.json is of an earlier bakeoff, or was changed: ${words}: run it again with this one`,
    );
  });

  test.each([
    [
      'a variant',
      '"name":"workers"',
      '"name":"../../../etc/nginx"',
      'variants[0].name "../../../etc/nginx" may have a-z, 0-9 and - only',
    ],
    [
      'a variant of two lines',
      '"name":"workers"',
      '"name":"a\\nb"',
      'variants[0].name "a\\nb" may have a-z',
    ],
    [
      'a server',
      '"name":"nginx"',
      '"name":"../../x"',
      'variants[0].server.name "../../x" may have no / in it',
    ],
    ['a run', '"run":"odd"', '"run":"../odd"', 'run "../odd" may have letters, digits and - only'],
    [
      'a scenario',
      '"scenario":"',
      '"scenario":"<b>',
      'scenario "<b>nginx-open-file-cache" may have a-z',
    ],
    [
      'a baseline',
      '"baseline":"workers"',
      '"baseline":"<b>"',
      'comparisons[0].baseline "<b>" may have a-z',
    ],
  ])('that a name is none: of %s', async (_, was, is, words) => {
    aRun('odd', JSON.stringify({ ...both, run: 'odd' }).replace(was, is));
    expect(await refused(['odd'], 1)).toContain(`was changed: ${words}`);
  });

  test('that it is a pipe, which nobody writes into', async () => {
    mkdirSync(join(home, 'results', 'pipe'), { recursive: true });
    execFileSync('mkfifo', [join(home, 'results', 'pipe', 'result.json')]);
    expect(await refused(['pipe'], 1)).toBe(
      `cannot read ${home}/results/pipe/result.json: it is a pipe, socket or device, not a file`,
    );
  });

  test('that it is a device', async () => {
    expect(await refused(['/dev/zero'], 1)).toBe(
      'cannot read /dev/zero: it is a pipe, socket or device, not a file',
    );
  });

  test('that it is far too long', async () => {
    truncateSync(join(aRun('long'), 'result.json'), 2 ** 31);
    expect(await refused(['long'], 1)).toBe(
      `cannot read ${home}/results/long/result.json: it has more than 256 MB`,
    );
  });

  test('that it is a folder', async () => {
    mkdirSync(join(home, 'results', 'deep', 'result.json'), { recursive: true });
    expect(await refused(['deep'], 1)).toBe(
      `cannot read ${home}/results/deep/result.json: it is a folder`,
    );
  });

  // Root may read everything.
  test.skipIf(process.getuid?.() === 0)('that it may not be read', async () => {
    chmodSync(join(aRun('closed'), 'result.json'), 0);
    expect(await refused(['closed'], 1)).toBe(
      `cannot read ${home}/results/closed/result.json: you may not read it`,
    );
  });

  test('that the page cannot go where it should', async () => {
    aRun('one');
    expect(await refused(['one', '--out', 'results'], 1)).toMatch(
      /^cannot write the page to .*results: it is a folder: name a file in it$/,
    );
    complained = [];
    expect(await refused(['one', '--out', 'results/one/result.json/page.html'], 1)).toMatch(
      /: there is a file of that name; .*--out$/,
    );
  });

  test('that a run is given twice', async () => {
    aRun('one');
    expect(await refused(['one', 'results/one'], 2)).toBe('results/one is given twice');
  });
});

test('a result that lacks anything is refused, or its page is made without it', async () => {
  // All places of a result with two rounds, one variant of which went over a network: the others are alike. So are the rounds and
  // the bars of a histogram: what is in the last one stands for all.
  const limited = { delayMs: 100, queuePackets: 1000, bytesPerSecond: 1e6, lossShare: 0.1 };
  const overLink: MeasuredVariant = {
    ...openFileCache,
    published: { rps: 700_324.14, packetsPerRequest: 9 },
    network: { ...delayed, toServer: limited },
    rounds: openFileCache.rounds.map(({ round, phases }) => ({
      round,
      phases: phases.map((one) => ({
        ...one,
        network: networkUse(one.requests, { toServer: traffic(100, 10, 138) }),
      })),
    })),
  };
  const whole = result(
    [workers, overLink].map((variant) => ({ ...variant, rounds: variant.rounds.slice(0, 2) })),
    {
      kernelSettings: [
        {
          side: 'server',
          name: 'net.core.somaxconn',
          value: '128',
          variants: ['open-file-cache'],
          problem: 'it is gone',
        },
      ],
    },
  );
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
  const text = JSON.stringify(whole);
  expect(all.length).toBeGreaterThan(500);
  const changes = [null, 'text', 7, []];
  for (const [index, place] of all.entries()) {
    for (const change of [undefined, changes[index % changes.length]]) {
      const odd = JSON.parse(text) as Record<string, unknown>;
      const last = place.at(-1) as string;
      const owner = place
        .slice(0, -1)
        .reduce((value, key) => value[key] as Record<string, unknown>, odd);
      if (change === undefined) delete owner[last];
      else owner[last] = change;
      let checked: Result;
      try {
        checked = checkResult(JSON.stringify(odd), 'file');
      } catch (error) {
        expect(error).toBeInstanceOf(UserError);
        continue;
      }
      await expect(
        htmlReport(checked, []),
        `${place.join('.')} = ${String(change)}`,
      ).resolves.toContain('</html>');
    }
  }
});

test('a result of a newer bakeoff, and one of an older: what is not known is left out, what is missing was not seen', async () => {
  const at = (value: unknown, ...path: (string | number)[]): Record<string, unknown> =>
    path.reduce((inner, key) => (inner as Record<string, unknown>)[key], value) as Record<
      string,
      unknown
    >;
  const whole = result([workers]);
  const newer = structuredClone(whole);
  const places = [
    [],
    ['environment'],
    ['variants', 0],
    ['variants', 0, 'server'],
    ['variants', 0, 'published'],
    ['variants', 0, 'rounds', 0, 'phases', 0],
    ['variants', 0, 'rounds', 0, 'phases', 0, 'latencyMs'],
  ];
  for (const place of places) at(newer, ...place)['ofTomorrow'] = { deep: [1] };
  expect(checkResult(JSON.stringify(newer), 'file')).toEqual(whole);

  const older = structuredClone(whole);
  for (const { phases } of older.variants[0]?.rounds ?? []) {
    for (const one of phases) {
      for (const field of ['hung', 'longestGapMs', 'monotonicMs', 'turns', 'idleCpuShare'] as const)
        delete (one as Partial<typeof one>)[field];
      delete (one.latencyMs as Partial<typeof one.latencyMs>).histogram;
      Object.assign(one, { settling: 7 });
    }
  }
  const checked = checkResult(JSON.stringify(older), 'file');
  const read = checked.variants[0]?.rounds[1]?.phases[0];
  expect(read).toMatchObject({
    hung: 0,
    longestGapMs: 0,
    monotonicMs: [0, 0],
    turns: null,
    idleCpuShare: null,
    latencyMs: { histogram: [] },
    requests: 604_300,
  });
  expect(read).not.toHaveProperty('settling');
  await expect(htmlReport(checked, [])).resolves.toContain('</html>');
});

test('a result has its histograms in a line each, and is read as it was', () => {
  const text = resultJson(both);
  expect(text.match(/^ +"histogram": \[\[.*\]\],?$/gm)?.length).toBeGreaterThan(0);
  expect(text).not.toMatch(/"histogram": \[$/m);
  expect(JSON.parse(text)).toEqual(both);
});

test.each([
  '\u{e000}',
  '\u{e000}y\u{e000}',
  '\n  "histogram": "[1]",\n',
  '"histogram": "x"',
  '\u2028"histogram": "x"',
])('a result with %j in a text is read as it was', (text) => {
  const odd = {
    ...both,
    title: text,
    warnings: [text, `its log says: ${text}`],
    environment: { ...both.environment, versions: { histogram: text, k6: '2' } },
  };
  expect(JSON.parse(resultJson(odd))).toEqual(odd);
});

test('a result of a bakeoff that measured what the generator can do at most, and shares of effects: its page is made without them', async () => {
  const older = {
    ...both,
    shares: [
      {
        variant: 'open-file-cache',
        of: 'workers',
        baseline: 'workers',
        words: 'the cache',
        share: 1,
        ci95: null,
      },
    ],
    ceilings: [{ variants: ['workers', 'open-file-cache'], rps: 110_000, generatorShare: 0.97 }],
    variants: both.variants.map((variant) => ({ ...variant, ceilingShare: 0.55 })),
  };
  expect(checkResult(JSON.stringify(older), 'file')).toEqual(both);
  const folder = aRun('older', JSON.stringify({ ...older, run: 'older' }));
  expect(await main(['report', 'older']), complained.join()).toBe(0);
  expect(readFileSync(join(folder, 'report.html'), 'utf8')).toContain(
    'open-file-cache is 33\u00a0% faster than workers',
  );
});

describe('files beside a result', () => {
  const secret = 'a secret of this machine';

  test("are shown where they are the run's own", async () => {
    const folder = join(aRun('one'), 'round-1', 'workers');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'kept'), 'worker_processes 7;');
    symlinkSync('kept', join(folder, 'nginx.conf'));
    expect(await main(['report', 'one'])).toBe(0);
    expect(readFileSync(join(home, 'results/one/report.html'), 'utf8')).toContain(
      'worker_processes 7;',
    );
  });

  test.each(['file', 'folder', 'round'])(
    'are not where a link leads out of its folder: a %s',
    async (kind) => {
      const outside = join(home, 'outside', 'workers');
      mkdirSync(outside, { recursive: true });
      writeFileSync(join(outside, 'nginx.conf'), secret);
      const run = aRun('one');
      const round = join(run, 'round-1');
      if (kind === 'round') symlinkSync(join(home, 'outside'), round);
      else mkdirSync(round);
      if (kind === 'folder') symlinkSync(outside, join(round, 'workers'));
      if (kind === 'file') {
        mkdirSync(join(round, 'workers'));
        symlinkSync(join(outside, 'nginx.conf'), join(round, 'workers', 'nginx.conf'));
      }
      expect(await main(['report', 'one'])).toBe(0);
      expect(readFileSync(join(run, 'report.html'), 'utf8')).not.toContain(secret);
    },
  );

  test('are not waited for where they are pipes', async () => {
    const folder = join(aRun('one'), 'round-1', 'workers');
    mkdirSync(folder, { recursive: true });
    execFileSync('mkfifo', [join(folder, 'nginx.conf'), join(folder, 'record.ndjson')]);
    expect(await main(['report', 'one'])).toBe(0);
  });
});
