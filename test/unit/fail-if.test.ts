import { describe, expect, test } from 'vitest';
import { failIfCode, readFailIf } from '../../lib/cli/fail-if.ts';
import { UserError } from '../../lib/errors.ts';
import type { Comparison, Result, Verdict } from '../../lib/result/result.ts';
import { openFileCache, result, workers } from '../fixtures/result.ts';

describe('--fail-if', () => {
  const answer = (asked: Result, gates: string): { code: number; said: string[] } => {
    const said: string[] = [];
    return {
      code: failIfCode(asked, readFailIf('--fail-if', gates), (line) => said.push(line)),
      said,
    };
  };
  const having = (changes: Partial<Comparison>, more: readonly Comparison[] = []): Result => {
    const whole = result([workers, openFileCache]);
    return {
      ...whole,
      comparisons: [{ ...(whole.comparisons[0] as Comparison), why: 'so', ...changes }, ...more],
    };
  };
  const codeOf = (
    gates: string,
    verdict: Verdict,
    more: readonly Comparison[] = [],
    delayNotHeld: string[] = [],
  ): { code: number; said: string[] } => answer(having({ verdict, delayNotHeld }, more), gates);

  test.each<[string, Verdict, number]>([
    ['slower', 'slower', 3],
    ['faster', 'faster', 3],
    ['different', 'slower', 3],
    ['different', 'faster', 3],
    ['slower', 'faster', 0],
    ['faster', 'slower', 0],
    ['slower', 'same', 0],
    ['different', 'same', 0],
    ['different', 'inconclusive', 0],
  ])('%s with %s is %i', (failIf, verdict, code) => {
    const said =
      verdict === 'inconclusive'
        ? [`--fail-if ${failIf} was not shown: open-file-cache against workers is inconclusive`]
        : code === 0
          ? []
          : [`--fail-if ${failIf}: open-file-cache is ${verdict} than workers`];
    expect(codeOf(failIf, verdict)).toEqual({ code, said });
  });

  test('asks the rows alone, not what is compared beside them', () => {
    const [comparison] = result([workers, openFileCache]).comparisons as [Comparison];
    expect(
      codeOf('slower', 'same', [{ ...comparison, baseline: 'other', verdict: 'slower' }]).code,
    ).toBe(0);
  });

  test.each<[string, Verdict]>([
    ['slower', 'slower'],
    ['slower', 'faster'],
    ['different', 'same'],
  ])('%s is not answered by %s over a link that was late', (failIf, verdict) => {
    expect(() => codeOf(failIf, verdict, [], ['workers'])).toThrow(
      new UserError(
        `--fail-if ${failIf} cannot be told: on open-file-cache against workers the delay was not held with workers, so the difference may be the link's`,
      ),
    );
  });

  test('is not answered by a row without a verdict, unless another one is what it asks about', () => {
    expect(() => codeOf('slower', 'none')).toThrow(
      new UserError(
        '--fail-if slower cannot be told: no verdict on open-file-cache against workers, so',
      ),
    );
    const { variants, comparisons, ...rest } = result([workers, openFileCache]);
    const [comparison, second] = [comparisons[0] as Comparison, variants[1]];
    if (second === undefined) throw new Error('no variant');
    const both = {
      ...rest,
      variants: [...variants, { ...second, name: 'b' }],
      comparisons: [
        { ...comparison, verdict: 'none' as const },
        { ...comparison, variant: 'b', verdict: 'slower' as const },
      ],
    };
    expect(answer(both, 'slower').code).toBe(3);
  });

  test('names all that are left open', () => {
    const { variants, comparisons, ...rest } = result([workers, openFileCache]);
    const [comparison, second] = [
      { ...(comparisons[0] as Comparison), verdict: 'inconclusive' as const },
      variants[1],
    ];
    if (second === undefined) throw new Error('no variant');
    const open = {
      ...rest,
      variants: [...variants, { ...second, name: 'b' }],
      comparisons: [comparison, { ...comparison, variant: 'b' }],
    };
    expect(answer(open, 'slower')).toEqual({
      code: 0,
      said: [
        '--fail-if slower was not shown: open-file-cache against workers, b against workers are inconclusive',
      ],
    });
  });

  test('passes over rows that are published only', () => {
    const { variants, comparisons, ...rest } = result([workers, openFileCache]);
    const [comparison, second] = [comparisons[0] as Comparison, variants[1]];
    if (second === undefined) throw new Error('no variant');
    const published = {
      ...rest,
      variants: [...variants, { ...second, name: 'spdy', server: null, rounds: [] }],
      comparisons: [
        { ...comparison, verdict: 'same' as const },
        { ...comparison, variant: 'spdy', verdict: 'none' as const },
      ],
    };
    expect(answer(published, 'slower').code).toBe(0);
  });

  test.each<[string, Partial<Comparison>, number, string]>([
    [
      'slower>3%',
      { ratio: 0.96, ci95: [0.95, 0.969] },
      3,
      'open-file-cache against workers: requests/s ×0.96 [0.95, 0.97]',
    ],
    // The whole interval has to lie beyond it.
    [
      'slower>3%',
      { ratio: 0.96, ci95: [0.95, 0.971] },
      0,
      ' was not shown: open-file-cache against workers is inconclusive',
    ],
    ['slower>3%', { ratio: 0.98, ci95: [0.971, 0.99] }, 0, ''],
    ['slower>3%', { ratio: 1.05, ci95: [1.04, 1.06] }, 0, ''],
    [
      'faster>3%',
      { ratio: 1.05, ci95: [1.04, 1.06] },
      3,
      'open-file-cache against workers: requests/s ×1.05 [1.04, 1.06]',
    ],
    [
      'slower>3%',
      { metric: 'p99', ratio: 1.05, ci95: [1.04, 1.06] },
      3,
      'open-file-cache against workers: p99 ×1.05 [1.04, 1.06]',
    ],
    [
      'faster>3%',
      { metric: 'p99', ratio: 0.95, ci95: [0.94, 0.96] },
      3,
      'open-file-cache against workers: p99 ×0.95 [0.94, 0.96]',
    ],
    // An effect that requests/s do not decide.
    [
      'slower, cpu>3%',
      { verdict: 'inconclusive', cpu: { ratio: 1.66, ci95: [1.38, 1.98] } },
      3,
      'open-file-cache against workers: CPU per request ×1.66 [1.38, 1.98]',
    ],
    [
      'p99>5%',
      { latency: { p50: null, p90: null, p99: { ratio: 1.2, ci95: [1.1, 1.3], verdict: 'none' } } },
      3,
      'open-file-cache against workers: p99 ×1.20 [1.10, 1.30]',
    ],
    ['inconclusive', { verdict: 'inconclusive' }, 3, 'open-file-cache against workers'],
    ['inconclusive', { verdict: 'slower' }, 0, ''],
  ])('%s with %j is %i', (gates, changes, code, said) => {
    const [last = ''] = gates.split(', ').slice(-1);
    expect(answer(having({ verdict: 'slower', ...changes }), gates)).toEqual({
      code,
      said: said === '' ? [] : [`--fail-if ${last}${said.startsWith(' ') ? '' : ': '}${said}`],
    });
  });

  test.each<[string, Partial<Comparison>, string]>([
    ['cpu>3%', { cpu: null }, 'open-file-cache against workers has no CPU per request'],
    [
      'p99>3%',
      { latency: { p50: null, p90: null, p99: null } },
      'open-file-cache against workers has no p99',
    ],
    ['cpu>3%', { verdict: 'none' }, 'no verdict on open-file-cache against workers, so'],
    ['slower>3%', { verdict: 'none' }, 'no verdict on open-file-cache against workers, so'],
    ['inconclusive', { verdict: 'none' }, 'no verdict on open-file-cache against workers, so'],
  ])('%s is not answered with %j', (gates, changes, why) => {
    expect(() => answer(having({ verdict: 'same', ...changes }), gates)).toThrow(
      new UserError(`--fail-if ${gates} cannot be told: ${why}`),
    );
  });

  test('is not answered where too many requests of a side failed', () => {
    const whole = having({ verdict: 'same' });
    const failing = (successRatio: number): Result => ({
      ...whole,
      variants: whole.variants.map((one, index) => (index === 1 ? { ...one, successRatio } : one)),
    });
    expect(() => answer(failing(0.98), 'slower')).toThrow(
      new UserError(
        "--fail-if: of open-file-cache's requests 98.00 % succeeded, and 99.00 % are asked for: look at its log, or ask for less (success<50%)",
      ),
    );
    expect(answer(failing(0.98), 'slower,success<95%').code).toBe(0);
    expect(answer(failing(0.99), 'slower').code).toBe(0);
  });

  test.each([
    ['slow', 'there is no --fail-if "slow": did you mean slower?'],
    [
      'slower>',
      '--fail-if slower>: write slower>3%, faster>3%, cpu>3%, p50>5%, p90>5%, p99>5% or success<99%',
    ],
    ['slower:3%', /^--fail-if slower:3%: write slower>3%/],
    ['success>99%', /^--fail-if success>99%: write/],
    ['slower>100%', /^--fail-if slower>100%: write/],
    ['slower,', /^there is no --fail-if ""/],
  ])('%j is refused', (gates, message) => {
    expect(() => readFailIf('--fail-if', gates)).toThrow(
      typeof message === 'string' ? new UserError(message, 2) : message,
    );
  });
});
