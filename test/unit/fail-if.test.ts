import { expect, test } from 'vitest';
import { failIfCode, readFailIf } from '../../lib/cli/fail-if.ts';
import { UserError } from '../../lib/errors.ts';
import type { Comparison, Result, VariantResult, Verdict } from '../../lib/result/result.ts';
import { openFileCache, result, workers } from '../fixtures/result.ts';

const whole = result([workers, openFileCache]);
const [row] = whole.comparisons as [Comparison];
const pair = 'open-file-cache against workers';

const having = (...changes: Partial<Comparison>[]): Result => ({
  ...whole,
  comparisons: changes.map((change) => ({ ...row, why: 'so', ...change })),
});
const with3 = (of: Result, name: string, more: Partial<VariantResult> = {}): Result => ({
  ...of,
  variants: [...of.variants, { ...(of.variants[1] as VariantResult), name, ...more }],
});

function answer(asked: Result, gates: string): { code: number; lines: string[] } {
  const lines: string[] = [];
  const code = failIfCode(asked, readFailIf('--fail-if', gates), (line) => lines.push(line));
  return { code, lines };
}

test('uses all comparisons of what was run', () => {
  const beside: Partial<Comparison> = { baseline: 'other', verdict: 'slower' };
  expect(answer(having({ verdict: 'same' }, beside), 'slower').code).toBe(3);
  const both = having({ verdict: 'same' }, { variant: 'spdy', verdict: 'none' });
  const published = with3(both, 'spdy', { server: null, rounds: [] });
  expect(answer(published, 'slower').code).toBe(0);
});

const latency = { p50: null, p90: null, p99: null };
const p99: Comparison['latency']['p99'] = { ratio: 1.2, ci95: [1.1, 1.3], verdict: 'none' };
const slowerByCpu: Comparison['cpu'] = { ratio: 1.66, ci95: [1.38, 1.98], verdict: 'slower' };
const open = 'not certain, since its interval allows both';
test.each<[string, Partial<Comparison>, number, ...string[]]>([
  ['inconclusive', { verdict: 'inconclusive' }, 3, 'requests/s +33 % [31, 34] inconclusive: true'],
  ['slower', { verdict: 'faster' }, 0, 'requests/s +33 % [31, 34] faster: false'],
  [
    'slower',
    { verdict: 'inconclusive', ratio: 0.96, ci95: [0.9, 1.02] },
    0,
    `requests/s −4 % [−10, 2] inconclusive: ${open}`,
  ],
  ['slower>3%', { ratio: 0.96, ci95: [0.95, 0.969] }, 3, 'requests/s −4.0 % [−5.0, −3.1]: true'],
  // The whole interval must lie beyond the limit.
  ['slower>3%', { ratio: 0.96, ci95: [0.95, 0.971] }, 0, `requests/s −4.0 % [−5.0, −2.9]: ${open}`],
  ['slower>3%', { ratio: 0.98, ci95: [0.971, 0.99] }, 0, 'requests/s −2.0 % [−2.9, −1.0]: false'],
  ['faster>3%', { ratio: 1.05, ci95: [1.04, 1.06] }, 3, 'requests/s +5.0 % [4.0, 6.0]: true'],
  [
    'slower>3%',
    { metric: 'p99', ratio: 1.05, ci95: [1.04, 1.06] },
    3,
    'p99 +5.0 % [4.0, 6.0]: true',
  ],
  // CPU time decides nothing unless it is asked for, and each condition has its line.
  [
    'slower>3%',
    { verdict: 'inconclusive', ratio: 1, ci95: [0.95, 1.05], cpu: { ...slowerByCpu } },
    0,
    `requests/s ±0.0 % [−5.0, 5.0]: ${open} (it is slower by CPU per request: see --fail-if 'cpu>3%')`,
  ],
  [
    'slower,cpu>3%',
    {
      verdict: 'inconclusive',
      ratio: 1,
      ci95: [0.95, 1.05],
      cpu: { ...slowerByCpu, verdict: 'none' },
    },
    3,
    `requests/s ±0.0 % [−5.0, 5.0] inconclusive: ${open}`,
    'CPU per request +66 % [38, 98]: true',
  ],
  ['p99>5%', { latency: { ...latency, p99 } }, 3, 'p99 +20 % [10, 30]: true'],
  [
    'memory>5%',
    { ofServer: { memory: { ratio: 1.1, ci95: [1.06, 1.14], verdict: 'slower' } } },
    3,
    'memory +10 % [6, 14]: true',
  ],
  [
    'startup>10%',
    { ofServer: { startup: { ratio: 1, ci95: [1, 1.09], verdict: 'same' } } },
    0,
    'start-up ±0.0 % [0.0, 9.0]: false',
  ],
])('%s with %j is %i', (gates, changes, code, ...found) => {
  const names = gates.split(',');
  expect(answer(having({ verdict: 'slower', ...changes }), gates)).toEqual({
    code,
    lines: found.map((text, index) => `--fail-if ${names[index]}: ${pair}: ${text}`),
  });
});

test.each<[string, Partial<Comparison>, string]>([
  ['cpu>3%', { cpu: null }, 'it has no CPU per request'],
  ['p99>3%', { latency }, 'it has no p99'],
  ['startup>3%', { ofServer: {} }, 'it has no start-up'],
  [
    'cpu>3%',
    { obstacles: [{ metric: 'cpu', why: 'both waited' }] },
    'there is no verdict by CPU per request, both waited',
  ],
  ['cpu>3%', { verdict: 'none' }, 'it has no verdict, so'],
  [
    'slower',
    { verdict: 'slower', delayNotHeld: ['workers'] },
    'its delay was not held with workers',
  ],
])('%s cannot be decided with %j', (gates, changes, why) => {
  const lines: string[] = [];
  const asked = () =>
    failIfCode(having({ verdict: 'same', ...changes }), readFailIf('--fail-if', gates), (line) =>
      lines.push(line),
    );
  expect(asked).toThrow(
    new UserError('--fail-if: no condition is true, and not all could be decided'),
  );
  expect(lines).toEqual([
    expect.stringMatching(`^--fail-if ${gates}: ${pair}: cannot be decided: ${why}`),
  ]);
});

test('a limit that the shell took for a file is refused', () => {
  const asked = (output: string) => () => readFailIf('--fail-if', 'slower', output);
  for (const output of ['/home/me/=3%', '/home/me/3%,different'])
    expect(asked(output)).toThrow(output);
  expect(asked('/home/me/3%')).toThrow("put the condition in quotes: --fail-if 'slower>3%'");
  for (const output of ['/home/me/log', '/dev/pts/3', 'pipe:[31]', ''])
    expect(asked(output)).not.toThrow();
});

test('one condition that is true decides, whatever cannot be decided', () => {
  const two = (first: Verdict, other: Verdict): Result =>
    with3(having({ verdict: first }, { variant: 'b', verdict: other }), 'b');
  expect(answer(two('none', 'slower'), 'slower').code).toBe(3);
  const noCpu = having({ verdict: 'slower', ratio: 0.9, ci95: [0.89, 0.91], cpu: null });
  expect(answer(noCpu, 'cpu>3%,slower>3%').code).toBe(3);
  expect(answer(two('inconclusive', 'inconclusive'), 'slower').lines).toHaveLength(2);
});

test('is undecided if too many requests failed', () => {
  const same = having({ verdict: 'same' });
  const failing = (successRatio: number): Result => ({
    ...same,
    variants: same.variants.map((variant, index) =>
      index === 1 ? { ...variant, successRatio } : variant,
    ),
  });
  expect(() => answer(failing(0.98), 'slower')).toThrow(
    /open-file-cache's requests 98\.00 % succeeded, and 99\.00 % .*\(success<50%\)$/,
  );
  expect(answer(failing(0.98), 'slower,success<95%').code).toBe(0);
  expect(answer(failing(0.99), 'slower').code).toBe(0);
});

test.each([
  ['slow', /^there is no --fail-if "slow": did you mean slower\?$/],
  ['success>99%', /^--fail-if success>99%: write /],
  ['slower>100%', /^--fail-if slower>100%: write /],
])('%j is refused', (gates, message) => {
  expect(() => readFailIf('--fail-if', gates)).toThrow(
    expect.objectContaining({ message: expect.stringMatching(message), exitCode: 2 }),
  );
});
