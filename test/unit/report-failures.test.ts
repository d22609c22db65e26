// Loads that failed, rates that were not reached, and runs that ended early.
import { beforeEach, expect, test, vi } from 'vitest';
import type { MeasuredVariant } from '../../lib/analysis/verdict.ts';
import { inEveryRun } from '../../lib/cli/run-options.ts';
import { reportRun } from '../../lib/cli/run-output.ts';
import { UserError } from '../../lib/errors.ts';
import { curvesOf } from '../../lib/report/found.ts';
import { cellText } from '../../lib/report/table.ts';
import type { Phase, Result } from '../../lib/result/result.ts';
import { variantTable } from '../../lib/report/run-tables.ts';
import { asRunFolder, newFolder } from '../fixtures/new-folder.ts';
import { networkUse } from '../fixtures/link.ts';
import { answers, latency, noCauses, noLatency, phase, readErrors } from '../fixtures/phase.ts';
import {
  findingLines,
  changed,
  compared,
  openFileCache,
  result,
  workers,
} from '../fixtures/result.ts';
import { refusalOf } from '../fixtures/refused.ts';
import { columnOf } from '../fixtures/table.ts';

const atRate = (measurement: Phase, name = 'nginx', rate = 300_000): MeasuredVariant => ({
  ...workers,
  name,
  setup: name,
  published: null,
  load: { ...workers.load, command: 'vegeta attack', rate, connections: 10_000 },
  rounds: [1, 2, 3, 4].map((round) => ({ round, phases: [measurement] })),
});
const late = (changes: Partial<Phase> = {}): Phase =>
  phase({
    requests: 1_500_000,
    seconds: 15.68,
    latencyMs: latency(5300, 10_600, 10_700),
    sendDelayMs: latency(5290, 10_590, 10_680),
    serverCpuSeconds: 0.7 * 15.68,
    generatorCpuSeconds: 0.97 * 15.68,
    ...changes,
  });
const punctual = phase({
  requests: 1_500_000,
  seconds: 5.01,
  sendDelayMs: latency(0.01, 0.02, 0.3),
});
const notesOn = (...variants: MeasuredVariant[]) =>
  findingLines(result(variants)).filter((line) => line.includes('atency'));

test('a rate that was not reached shows what was made and why, but no latency', () => {
  expect(notesOn(atRate(late()))).toEqual([
    expect.stringMatching(
      /^nginx did not reach 300,000 requests\/s: 95,663 were made \(32 %\); the generator was at its limit\. Its latency .* does not hold/,
    ),
  ]);
  const table = variantTable(result([atRate(late())]));
  expect(columnOf(table, 'requests/s')).toEqual(['95,663 of 300,000']);
  expect(columnOf(table, 'unsent')).toBeUndefined();
});

test('a rate beyond the capacity shows what was made and how the queue grows, but no latency', () => {
  // 1,300/s are due and 1,000/s are served. The rest is answered after the turns, and counts by due time.
  const overloaded = (queueGrowth: NonNullable<Phase['queueGrowth']>): Phase =>
    phase({ requests: 13_000, rps: 1000, queueGrowth, latencyMs: latency(40, 90, 95) });
  const tableOf = (of: Phase) => variantTable(result([atRate(of, 'nginx', 1300)]));
  const growth = { perSecond: 300, standardError: 5 };
  expect(notesOn(atRate(overloaded(growth), 'nginx', 1300))).toEqual([
    expect.stringMatching(
      /^nginx did not reach 1,300 requests\/s: 1,000 were made \(77 %\); its queue grows by 300 each second, so/,
    ),
  ]);
  for (const title of ['p50 ms', 'p99 ms', 'max ms'])
    expect(columnOf(tableOf(overloaded(growth)), title)).toEqual(['grows']);
  // The curve has no point where the table has no latency.
  const ofSeries = (of: Phase) => [{ ...atRate(of, 'nginx', 1300), series: 'nginx' }];
  expect(curvesOf(result(ofSeries(overloaded(growth))))).toEqual([]);
  const slow = { perSecond: 1, standardError: 5 };
  expect(curvesOf(result(ofSeries(overloaded(slow))))).toEqual([
    { name: 'nginx', points: [{ rate: 1300, p50: 40, p99: 90 }] },
  ]);
  for (const over of [
    overloaded(growth),
    // Each round alone may be chance, but not all of them together.
    overloaded({ perSecond: 300, standardError: 150 }),
    // Without turns there are no later responses.
    phase({ requests: 10_000, turns: null, queueGrowth: growth }),
  ])
    expect(columnOf(tableOf(over), 'requests/s')).toEqual(['1,000 of 1,300']);
  // All rounds together may be chance, or the growth is negligible.
  for (const held of [
    { perSecond: 300, standardError: 250 },
    { perSecond: 10, standardError: 1 },
  ])
    expect(columnOf(tableOf(overloaded(held)), 'requests/s')).toEqual(['1,300']);
});

test('unsent requests are in the table and a note', () => {
  const cut = result([atRate(late({ requests: 900_000, seconds: 5, unsent: 600_000 }))]);
  expect(columnOf(variantTable(cut), 'unsent')).toEqual(['2,400,000']);
  expect(cut.warnings).toContainEqual(expect.stringContaining('2,400,000 of 6,000,000'));
});

test.each([
  [{ serverCpuSeconds: 15.6, generatorCpuSeconds: 5 }, 'the server was at its limit'],
  [{ serverCpuSeconds: null, generatorCpuSeconds: 5 }, 'the generator was not at its limit'],
])('a rate that was not reached has a cause: %j', (changes, cause) => {
  expect(notesOn(atRate(late(changes)))[0]).toContain(`; ${cause}`);
});

test('a rate that was reached shows how late requests left', () => {
  expect(notesOn(atRate(late()), atRate(punctual, 'h2o'))).toEqual([
    expect.stringContaining('nginx did not reach'),
    'Requests left late by (p50 and p99), which latency includes: h2o 100 µs and 100 µs.',
  ]);
});

test('of few responses no one in a hundred is said to be late', () => {
  const few = (responses: number) =>
    phase({
      requests: responses,
      latencyMs: latency(0.4, 3.3, 3.3, { histogram: [[3.3, responses]] }),
      sendDelayMs: latency(0.1, 3.2, 3.2),
    });
  const notesOf = (responses: number) =>
    result([atRate(few(responses), 'nginx', responses / 10)]).warnings.filter((note) =>
      note.includes('one request in a hundred'),
    );
  expect(notesOf(10)).toEqual([]);
  expect(notesOf(1000)).toHaveLength(1);
});

test('a rate counts as reached if only responses are missing', () => {
  const failing = phase({
    requests: 10_000,
    responses: answers({ '2xx': 9000 }),
    errors: readErrors(1000),
  });
  expect(notesOn(atRate(failing, 'nginx', 1000))).toEqual([]);
});

test('if most responses are errors, successful requests/s come first', () => {
  const answering = (ok: number) => {
    const failing = changed(openFileCache, ({ requests }) => ({
      responses: answers({ '2xx': ok, '4xx': requests - ok }),
    }));
    return variantTable(result([workers, failing]));
  };
  const table = answering(1000);
  expect(columnOf(table, 'requests/s', 'here')).toEqual(['60,411', '100.06 good of 80,275']);
  // Quick failures would be shown as speed.
  expect(columnOf(table, 'against workers')?.[1]).toBe('– no verdict');
  expect(columnOf(table, 'CPU change')).toBeUndefined();
  expect(table.columns.map(({ title }) => title).slice(3, 5)).toEqual(['requests/s', 'success']);
  expect(columnOf(answering(700_000), 'requests/s', 'here')?.[1]).toMatch(/^80,\d{3}$/);
});

test('hung requests are shown; more than 1 % prevent a verdict', () => {
  const hanging = (hung: number): Result =>
    result([workers, changed(openFileCache, () => ({ hung, inFlight: 100 }))]);
  expect(columnOf(variantTable(hanging(3)), 'hung')).toEqual(['', '18']);
  expect(hanging(3).warnings.join()).toContain('open-file-cache: 18 requests were never answered');
  expect(columnOf(variantTable(hanging(0)), 'hung')).toBeUndefined();
  // A note of both is one.
  const both = [workers, openFileCache].map((variant) =>
    changed(variant, () => ({ hung: 3, inFlight: 9 })),
  );
  const notes = result(both).warnings.filter((note) => note.includes('never answered'));
  expect(notes).toEqual([expect.stringMatching(/^workers and open-file-cache: 18 requests /)]);
  expect(hanging(20_000).comparisons[0]).toMatchObject({
    verdict: 'none',
    why: '2.4 % of the requests of open-file-cache failed',
  });
});

test('accept queues that overflowed are named where it mattered', () => {
  const overflowing = (changes: Partial<Phase>, overflows = 300, backlog?: number) => {
    const acceptQueue = { overflows, ...(backlog !== undefined && { backlog }) };
    return changed(openFileCache, () => ({ ...changes, acceptQueue }));
  };
  const notesOf = (variant: MeasuredVariant) =>
    result([workers, variant]).warnings.filter((note) => /queue|dropped them/.test(note));
  const lines = (text: string) => [expect.stringContaining(`: that of open-file-cache${text}, or`)];
  const times = (count: string) =>
    lines(` (of 5 places) ${count} times: take fewer connections (6 always find room)`);
  // The cause of hung requests is known: no guess.
  expect(notesOf(overflowing({ hung: 3, inFlight: 100 }, 300, 5))).toEqual(times('1,800'));
  expect(notesOf(overflowing({ latencyMs: latency(1, 90, 1100) }))).toEqual(
    lines(", or another side's, 1,800 times: take fewer connections"),
  );
  const network = networkUse(1000, { listenOverflows: 12 });
  expect(notesOf(overflowing({ hung: 3, network }, 300, 5))).toEqual(times('72'));
  expect(notesOf(overflowing({ latencyMs: latency(1, 90, 150) }, 300, 5))).toEqual([]);
  expect(notesOf(overflowing({ hung: 3, inFlight: 100 }, 0, 5))).toEqual([
    expect.stringContaining('the server probably dropped them'),
  ]);
});

beforeEach(() => void vi.spyOn(console, 'log').mockImplementation(() => undefined));
const options = {
  ...inEveryRun([]),
  contributionsTo: () => [],
  templates: {},
  help: false,
  quick: false,
  flags: new Map(),
  examined: 'none',
  sink: undefined,
  machines: undefined,
  out: '/',
  json: false,
  hosts: [],
  exports: [],
} as const;
const reset = phase({
  requests: 1000,
  responses: answers({}),
  errors: readErrors(1000),
  errorCauses: { ...noCauses, reset: 990, other: 10 },
  errorExample: 'read: no route to host',
  latencyMs: noLatency,
});
const refused = phase({ requests: 500, responses: answers({ '5xx': 500 }) });
const server = (redirections: readonly string[], name = 'nginx') => ({
  name,
  version: '',
  workers: 1,
  config: [],
  redirections: [...redirections],
});
const ending = (of: Result, ended?: unknown) =>
  reportRun({ result: of, ended, folder: asRunFolder(newFolder()) }, options, []);

test.each([
  [reset, '6,000 errors (5,940 reset, 60 other, read: no route to host)'],
  [refused, '3,000 answers with 5xx'],
  [
    { ...refused, statuses: { 500: 40, 501: 5, 502: 50, 503: 400, 504: 1, 599: 4 } },
    '240 answers with 500, 30 answers with 501, 300 answers with 502, 2,400 answers with 503 and 30 with others',
  ],
  [
    phase({ requests: 0, inFlight: 100, hung: 100, latencyMs: noLatency }),
    '600 requests were never answered and had waited for more than 1 s, and twice p99.9, when the load ended',
  ],
  [
    { ...reset, acceptQueue: { overflows: 1, backlog: 5 } },
    '6,000 errors (5,940 reset, 60 other, read: no route to host) and its accept queue (of 5 places) overflowed 6 times',
  ],
  [phase({ requests: 0, latencyMs: noLatency }), 'no request ended within the load'],
])(
  "a load without a success has a cause, also in the command's error (%#)",
  async (failing, why) => {
    const of = result([workers, changed(openFileCache, () => failing)]);
    expect(findingLines(of)).toContain(`No request of open-file-cache succeeded: ${why}.`);
    await expect(ending(of)).rejects.toThrow(
      new UserError(`a side was not measured: No request of open-file-cache succeeded: ${why}`),
    );
  },
);

test('with too many failures in every comparison there is no verdict', async () => {
  const half = phase({
    requests: 1000,
    responses: answers({ '2xx': 500, '5xx': 500 }),
    statuses: { 500: 500 },
  });
  const failing = changed(openFileCache, () => half);
  const unpublished = [workers, failing].map((variant) => ({ ...variant, published: null }));
  await expect(ending(result(unpublished))).rejects.toThrow(
    /^nothing was compared: 50 % of the requests of open-file-cache failed$/,
  );
  expect(await ending(result([workers, failing]))).toBe(0);
});

test('without any success there is no comparison; an early end comes first', async () => {
  const spdy = { ...openFileCache, server: null, publishedOnly: 'gone', rounds: [] };
  const failed = changed(workers, () => reset);
  await expect(ending(result([failed, spdy]))).rejects.toThrow(
    /^a side was not measured: No request of workers succeeded: /,
  );
  const ended = new Error('interrupted');
  const partial = result([failed], { state: 'partial' });
  await expect(ending(partial, ended)).rejects.toBe(ended);
});

const complete = result([workers, openFileCache]);
const partial: Result = { ...complete, state: 'partial', looks: [5, 10, 20] };

test('verdicts of a run that ended early are not final', () => {
  expect(variantTable(partial).rows[1]?.find((cell) => cellText(cell).includes('faster'))).toEqual({
    text: '+33 % [31, 34] faster, not final',
    part: 'faster, not final',
    verdict: 'inconclusive',
  });
  const [early, verdict] = findingLines(partial);
  expect(early).toMatch(/^Ended early, after 6 of at most 20 rounds\..* 5, 10 or 20 rounds/);
  const why = 'round 3 failed twice: nginx ended';
  expect(findingLines({ ...partial, endedBy: why })[0]).toMatch(
    /rounds\. The reason: round 3 failed twice: nginx ended\. No verdict is final/,
  );
  expect(verdict).toContain('), not final; ');
  expect(findingLines({ ...partial, control: true })[1]).toContain(', not final.');
  for (const of of [complete, compared(partial, { verdict: 'none' })])
    expect(JSON.stringify(variantTable(of))).not.toContain('final');
});

const limited = (status: string, answered: number): Phase =>
  phase({
    requests: 10_000,
    responses: answers({ '2xx': answered, [`${status[0]}xx`]: 10_000 - answered }),
    statuses: { [status]: 10_000 - answered },
  });
const limit = (...lines: string[]) => [
  `listen 80 → 127.0.0.1:1`,
  ...lines.map((line) => `${line} at /a.conf:8: may turn away requests of the load`),
];
const cutShort = phase({
  requests: 1000,
  responses: answers({ '2xx': 900 }),
  errors: readErrors(100),
  errorCauses: { ...noCauses, short: 100 },
});

const away = 'turned them away: take';
const atRate400 = 'or load at 400 requests/s or less, such as "vegeta attack -rate 400"';

test.each([
  [
    'over 99 %',
    limited('503', 45),
    server(limit('limit_req zone=one')),
    `limit_req zone=one at /a.conf:8 ${away} it out of a copy of the config, or load at 3 requests/s or less, such as "vegeta attack -rate 3"`,
  ],
  [
    '50 %',
    limited('503', 5000),
    server(limit('limit_req zone=a (rate=100r/s)', 'limit_req zone=b (rate=2400r/m)')),
    `limit_req zone=a (rate=100r/s) at /a.conf:8 and limit_req zone=b (rate=2400r/m) at /a.conf:8 ${away} them out of a copy of the config, or load at 30 requests/s or less, such as "vegeta attack -rate 30"`,
  ],
  [
    '50 %',
    limited('429', 5000),
    server(limit('limit_conn c 10')),
    `limit_conn c 10 at /a.conf:8 ${away} it out of a copy of the config, or load with fewer connections, such as "wrk -c 10"`,
  ],
  [
    '50 %',
    limited('429', 5000),
    server(limit('limit_req zone=a', 'limit_req zone=b')),
    `limit_req zone=a at /a.conf:8 and limit_req zone=b at /a.conf:8 ${away} them out of a copy of the config, ${atRate400}`,
  ],
  [
    '50 %',
    limited('429', 5000),
    server([]),
    `a limit of the server turned them away: lift it, ${atRate400}`,
  ],
  // A backend may be overloaded.
  ['50 %', limited('503', 5000), server([]), undefined],
  ['50 %', limited('500', 5000), server(limit('limit_req zone=one')), undefined],
  ['10 %', cutShort, server([], 'httpd'), undefined],
  [
    '10 %',
    cutShort,
    server(['PidFile → a temporary file'], 'web'),
    'Apache closes connections that wait for a request when its threads are used up: give it a thread',
  ],
])(
  'what turned requests away is named, with what to do: %s failed (%#)',
  async (share, failing, of, cause) => {
    const side = { ...changed(openFileCache, () => failing), server: of, published: null };
    const made = result([{ ...workers, published: null }, side]);
    const message = `nothing was compared: ${share} of the requests of open-file-cache failed`;
    const error = await refusalOf(ending(made));
    const note = made.warnings.find((line) => line.includes(' among '));
    if (cause === undefined)
      expect([error, note]).toEqual([
        message,
        expect.stringMatching(/requests: requests\/s alone do not compare$/),
      ]);
    else
      expect([error, note]).toEqual([
        expect.stringContaining(`${message}: ${cause}`),
        expect.stringContaining(` requests: ${cause}`),
      ]);
  },
);
