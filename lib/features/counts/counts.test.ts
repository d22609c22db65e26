// --counts: conditions, intervals, and words.
import { expect, test } from 'vitest';
import { additions } from '../../cli/main.ts';
import { compareCommand } from '../../cli/compare.ts';
import type { Counted } from '../../result/counts.ts';
import { countsGivenWithout, judge, readConditions } from './conditions.ts';
import { differenceOf, differencesOf, differs } from './difference.ts';
import { countsReport } from './report.ts';

const read = (text: string) => readConditions('--fail-if', text);

test('a condition is a count with a limit, per request or as a share', () => {
  expect(read('syscalls>0, segments>5%')).toEqual([
    { text: 'syscalls>0', count: 'syscalls', limit: 0, isShare: false },
    { text: 'segments>5%', count: 'segments', limit: 0.05, isShare: true },
  ]);
});

test.each([
  ['syscall>0', 'there is no count "syscall": did you mean syscalls?'],
  ['bytes>0,files>0', 'there is no count "files": there are syscalls, bytes, segments, switches, '],
  // The shell has taken ">0" for a redirection.
  ['syscalls', '--fail-if syscalls: write (in quotes) syscalls>0, or segments>5%'],
  ['bytes<100', '--fail-if bytes<100: write (in quotes) '],
  ['bytes>-1', '--fail-if bytes>-1: write (in quotes) '],
  ['bytes>1,', 'there is no count ""'],
  ['syscalls>0,slower>3%', '--fail-if slower>3%: with --counts no time is judged'],
  ['p99>5%', '--fail-if p99>5%: with --counts no time is judged'],
])('%s is refused', (text, message) => {
  expect(() => read(text)).toThrow(message);
});

test('without --counts, conditions on counts are refused, and others are left to the core', () => {
  const without = (text: string) => countsGivenWithout('--fail-if', text);
  expect(() => without('slower,syscalls>0')).toThrow('by compare with --counts only');
  expect(() => without('slower>3%,success<95%')).not.toThrow();
});

test.each([
  ['--rounds 4', '--counts and --rounds do not go together: leave one out'],
  ['--metric p99', '--counts and --metric do not go together: leave one out'],
  ['--server-host web1', '--counts and --server-host do not go together: leave one out'],
  ['--fail-if slower', 'with --counts no time is judged'],
])('--counts %s is refused before anything runs', async (flags, message) => {
  const args = ['a.conf', 'b.conf', '--counts', ...flags.split(' ')];
  await expect(compareCommand(args, additions)).rejects.toThrow(message);
});

test('passes that are alike make an exact difference', () => {
  expect(differenceOf('syscalls', [9, 9.001], [6.001, 6])).toEqual({
    difference: expect.closeTo(3, 2),
    low: expect.closeTo(3, 2),
    high: expect.closeTo(3, 2),
  });
  // A timer more or less in thousands of requests.
  expect(differenceOf('syscalls', [6.008, 6.008], [6, 6])).toEqual({
    difference: 0,
    low: 0,
    high: 0,
  });
});

test('passes with a spread make an interval, which more passes make narrower', () => {
  const two = differenceOf('bytes', [105, 107], [100, 102]);
  expect(two).toMatchObject({ difference: 5 });
  expect(differs(two)).toBe(false);
  const many = differenceOf(
    'bytes',
    [105, 107, 106, 106, 105, 107],
    [100, 102, 101, 101, 100, 102],
  );
  expect(differs(many)).toBe(true);
  expect(many.high - many.low).toBeLessThan((two.high - two.low) / 4);
});

test('of equal sides with noise, hardly one in a thousand differs', () => {
  let seed = 1;
  // Park and Miller.
  const random = () => (seed = (48_271 * seed) % 2_147_483_647) / 2_147_483_647;
  const normal = () => Math.sqrt(-2 * Math.log(random())) * Math.cos(2 * Math.PI * random());
  const passes = () => Array.from({ length: 2 }, () => 50 + normal());
  let alarms = 0;
  for (let run = 0; run < 5000; run++)
    if (differs(differenceOf('faults', passes(), passes()))) alarms++;
  expect(alarms).toBeLessThan(15);
});

const sides: Counted['sides'] = [
  {
    variant: 'a',
    syscalls: [6, 6],
    bytes: [200, 200],
    segments: [1, 1],
    switches: [1, 1.5],
    calls: [{ name: 'writev', perRequest: 1 }],
  },
  {
    variant: 'b',
    syscalls: [8, 8],
    bytes: [200, 200],
    switches: [1.2, 1.4],
    calls: [
      { name: 'writev', perRequest: 1 },
      { name: 'openat', perRequest: 2 },
    ],
  },
];
const counted: Counted = {
  requests: 3000,
  sides,
  differences: differencesOf(sides),
  missing: ['segments of b, which are elsewhere'],
};

function codeOf(text: string): { code: number | string; lines: string[] } {
  const lines: string[] = [];
  try {
    return { code: judge(counted, read(text), (line) => lines.push(line)), lines };
  } catch (error) {
    return { code: (error as Error).message, lines };
  }
}

test('a gate on counts: true, false, not certain, and not told', () => {
  expect(codeOf('syscalls>0,segments>0')).toEqual({
    code: 3,
    lines: [
      '--fail-if syscalls>0: b against a: syscalls +2: true',
      '--fail-if segments>0: b against a: cannot be told: segments were not counted',
    ],
  });
  expect(codeOf('syscalls>2,syscalls>33.4%,bytes>0').code).toBe(0);
  expect(codeOf('syscalls>33%').code).toBe(3);
  const open = codeOf('switches>0');
  expect(open).toMatchObject({ code: 0 });
  expect(open.lines[0]).toMatch(
    /\[−[\d.]+, \+[\d.]+\]: not certain, since its interval allows both$/,
  );
  expect(codeOf('segments>0').code).toBe(
    '--fail-if: no condition is true, and not all could be decided',
  );
});

test('a sentence for each difference, with the calls, and on what is not certain or not counted', () => {
  const { findings = [], tables = [] } = countsReport({ counts: counted });
  expect(findings).toEqual([
    'b makes 2 more system calls per request than a: 8 instead of 6 (openat +2).',
    'b and a do not differ in bytes to the client.',
    'Whether b and a differ in context switches is not certain.',
    'Not counted: segments of b, which are elsewhere.',
  ]);
  expect(tables[0]?.title).toBe('Per request, of 3,000 in a pass, one at a time:');
  expect(countsReport({})).toEqual({});
});
