import { describe, expect, it } from 'vitest';
import { additions } from '../../cli/main.ts';
import type { Comparison, Result } from '../../result/result.ts';
import type { WhySide } from '../../result/why.ts';
import { cpuBars, whyLines, whyPart } from './report.ts';
import { changedSettings } from '../../report/html/differences.ts';
import { htmlReport } from '../../report/html/run-page.ts';
import { readArguments } from '../../cli/arguments.ts';
import { UserError } from '../../errors.ts';
import type { EndedRun } from '../../runner/examine.ts';
import { lookAfterRounds } from './after-rounds.ts';
import { expectedLook, isAsked, lengthOfLook } from './length.ts';
import { why } from './feature.ts';
import { flameGraph } from './flame.ts';
import { cellText } from '../../report/table.ts';
import { countsIn, placeOf } from './perf-output.ts';
import { findScenario } from '../../cli/find-scenario.ts';
import { command, nginx } from '../../scenario/index.ts';
import type { LoadContext } from '../../runner/under-load.ts';
import { estimatedSeconds } from '../../runner/times.ts';
import { lookAlone } from './look.ts';
import { newFolder } from '../../../test/fixtures/new-folder.ts';
import { planOf } from '../../../test/fixtures/plan.ts';
import { compared, openFileCache, result, workers } from '../../../test/fixtures/result.ts';

const calls = new Set(['writev', 'openat', 'sendfile64', 'accept4', 'read']);
const programs = new Set(['/usr/sbin/nginx']);
const kernel = '[kernel.kallsyms]';
/** @param stack frames, innermost first, each in the kernel unless it has an @object */
const placeIn = (stack: string) => {
  const frames = stack.split(' ').map((frame) => {
    const [symbol = '', object = kernel] = frame.split('@');
    return { symbol, object };
  });
  const { kind, name } = placeOf(frames, calls, programs);
  return `${kind}: ${name}`;
};

it.each([
  [
    'call: writev',
    'tcp_v4_rcv vfs_writev do_writev do_syscall_64 entry_SYSCALL_64 writev@/lib/libc',
  ],
  ['call: openat', 'do_sys_openat2 do_syscall_64 entry_SYSCALL_64'],
  ['call: accept4', 'kmalloc __sys_accept4 invoke_syscall.constprop.0 el0_svc'],
  // An interrupt during a call counts for the call.
  ['call: read', 'handle_irq asm_sysvec_apic_timer_interrupt vfs_read ksys_read do_syscall_64'],
  [
    'kernel: entering and leaving system calls',
    'schedule exit_to_user_mode_loop do_syscall_64 entry_SYSCALL_64',
  ],
  ['kernel: entering and leaving system calls', 'entry_SYSRETQ_unsafe_stack'],
  ['kernel: page faults', 'do_user_addr_fault exc_page_fault asm_exc_page_fault'],
  ['kernel: interrupts', 'handle_softirqs asm_sysvec_apic_timer_interrupt main@/usr/sbin/nginx'],
  ['kernel: the rest of the kernel', 'ret_from_fork'],
  ['user: own code', 'ngx_http_send@/usr/sbin/nginx'],
  ['user: libcrypto', '[unknown]@/usr/lib/x86_64-linux-gnu/libcrypto.so.3'],
  ['user: code made at run time', 'Builtin@/tmp/perf-123.map'],
  ['user: [vdso]', 'clock_gettime@[vdso]'],
])('a sample belongs to %s', (expected, stack) => {
  expect(placeIn(stack)).toBe(expected);
});

it('counts are per request; unsupported counters are absent', () => {
  const text = `# started on …

2000;;raw_syscalls:sys_enter;1;100.00;;
3;;context-switches;1;100.00;;
<not supported>;;instructions;0;100.00;;
500;;syscalls:sys_enter_writev;1;100.00;;
1500;;syscalls:sys_enter_newfstatat;1;100.00;;
`;
  expect(countsIn(text, 500)).toEqual({
    calls: [
      { name: 'newfstatat', perRequest: 3 },
      { name: 'writev', perRequest: 1 },
    ],
    counts: { calls: 4, contextSwitches: 0.006 },
  });
});

interface Made {
  calls?: Record<string, number>;
  cpu?: Record<string, number>;
  switches?: number;
}

function kindOf(name: string, calls: Record<string, number>) {
  if (name in calls) return 'call';
  return name.startsWith('lib') ? 'user' : 'kernel';
}

function side(variant: string, { calls: counted = {}, cpu = {}, switches = 0.001 }: Made): WhySide {
  return {
    variant,
    requests: 100_000,
    cpuUs: 20,
    calls: Object.entries(counted).map(([name, perRequest]) => ({ name, perRequest })),
    counts: {
      calls: Object.values(counted).reduce((sum, count) => sum + count, 0),
      contextSwitches: switches,
    },
    cpu: Object.entries(cpu).map(([name, us]) => ({
      kind: kindOf(name, counted),
      name,
      us,
      sdUs: 0.05,
    })),
    functions: [],
  };
}

const looked = (baseline: Made, variant: Made, changes: Partial<Result> = {}): Result =>
  result([workers, openFileCache], {
    ...changes,
    why: { missing: [], sides: [side('workers', baseline), side('open-file-cache', variant)] },
  });

/** Its interval is beyond 1, and it has no verdict. */
const unsure: Comparison['cpu'] = { ratio: 2, ci95: [1.9, 2.1], verdict: 'none' };

const plain = {
  calls: { writev: 1, openat: 1, epoll_wait: 0.5 },
  cpu: { writev: 6, openat: 2, libc: 12 },
};

describe('the sentence', () => {
  it.each([
    [
      'calls that are gone, with their CPU time',
      { calls: { writev: 1, epoll_wait: 0.7 }, cpu: { writev: 6, libc: 12 } },
      'open-file-cache makes 1.7 system calls per request, workers 2.5: no openat, which is 2.0 µs of the 2.0 µs of CPU time that open-file-cache saves',
    ],
    [
      'a part that saves more than all parts together',
      { calls: { writev: 1, epoll_wait: 0.7 }, cpu: { writev: 6, libc: 12.05 } },
      'open-file-cache makes 1.7 system calls per request, workers 2.5: no openat, which is 2.0 µs of CPU time that open-file-cache saves',
    ],
    [
      'other calls, as many',
      { calls: { writev: 1, write: 1, epoll_wait: 0.5 }, cpu: { writev: 6, write: 12, libc: 12 } },
      'open-file-cache makes as many system calls per request as workers (2.5): 1 write and no openat, which is 10.0 µs of the 10.0 µs of CPU time that open-file-cache uses more',
    ],
    [
      'the largest cause first',
      { calls: { ...plain.calls, write: 1 }, cpu: { ...plain.cpu, libz: 30, write: 1 } },
      'open-file-cache spends 30.0 µs more CPU time per request in libz than workers; open-file-cache makes 3.5 system calls per request, workers 2.5: 1 write',
    ],
    [
      'context switches',
      { ...plain, switches: 0.3 },
      'open-file-cache makes 300 context switches per 1,000 requests, workers 1',
    ],
    [
      'nothing for what a new start can make',
      { ...plain, cpu: { writev: 6.3, openat: 1.95, libc: 12.5 } },
      'nothing that perf sees differs between open-file-cache and workers',
    ],
  ])('names %s', (_, variant, text) => {
    expect(whyLines(looked(plain, variant))).toEqual([`Why: ${text}.`]);
  });

  it.each([
    [
      'neither requests/s nor CPU per request have a verdict',
      { verdict: 'inconclusive', cpu: null },
    ],
    ['other programs took the verdict back', { verdict: 'none', cpu: unsure }],
    [
      'only other programs may make CPU per request differ',
      { verdict: 'inconclusive', cpu: unsure, obstacles: [{ metric: 'cpu', why: 'others' }] },
    ],
    ['requests/s differ, and CPU per request may not', { verdict: 'faster', cpu: null }],
    [
      'CPU per request has the verdict that it is the same',
      { verdict: 'same', cpu: { ratio: 1.005, ci95: [1.002, 1.008], verdict: 'same' } },
    ],
  ] as [string, Partial<Comparison>][])('names nothing if %s', (_, changes) => {
    const slowed = { calls: { ...plain.calls, write: 1 }, cpu: { ...plain.cpu, libz: 30 } };
    expect(whyLines(compared(looked(plain, slowed), changes))).toEqual([]);
  });

  it('names what takes more CPU time at a rate, at which CPU per request has no verdict', () => {
    const slowed = { ...plain, cpu: { ...plain.cpu, libz: 30 } };
    const atRate = { metric: 'p99', verdict: 'inconclusive', cpu: unsure } as const;
    expect(whyLines(compared(looked(plain, slowed), atRate))).toEqual([
      'Why: open-file-cache spends 30.0 µs more CPU time per request in libz than workers.',
    ]);
  });

  it.each([
    [20_000, /: 0\.076 epoll_ctl\.$/],
    [2000, /nothing that perf sees differs/],
  ])(
    'excludes calls that open the connections of the load: %i requests',
    (countedRequests, text) => {
      const made = looked(plain, { ...plain, calls: { ...plain.calls, epoll_ctl: 0.076 } });
      for (const variant of made.variants)
        Object.assign(variant, { load: { ...variant.load, connections: 100 } });
      for (const side of made.why?.sides ?? []) side.countedRequests = countedRequests;
      expect(whyLines(made)[0]).toMatch(text);
    },
  );

  it('leaves calls out if their load hardly had time for more than its connections', () => {
    const many = { ...plain, calls: { ...plain.calls, epoll_ctl: 14_000 }, switches: 40 };
    const madeWith = (countedRequests: number) => {
      const made = looked(plain, many);
      for (const variant of made.variants)
        Object.assign(variant, { load: { ...variant.load, connections: 1000 } });
      for (const side of made.why?.sides ?? []) side.countedRequests = countedRequests;
      return made;
    };
    expect(whyLines(madeWith(20_000))[0]).toContain('makes 14,000 system calls per request');
    expect(whyLines(madeWith(3)).join()).not.toMatch(/calls|switches/);
    const [part] = whyPart(madeWith(3));
    expect(part?.tables[0]?.rows).toEqual([]);
    expect(part?.below).toContain(
      'workers: system calls are left out: only 3 requests ended while perf counted, so most calls opened the connections of the load.',
    );
  });

  it.each([
    [0, 'with a full TLS handshake'],
    [0.9, 'with a TLS handshake (90 % of them resumed a session)'],
  ])('names handshakes, of which %d resumed', (resumed, text) => {
    const made = looked(plain, plain);
    const [, variant] = made.variants;
    if (variant === undefined) throw new Error('there are two');
    const perRequest = { connections: 1, handshakes: 1, resumed };
    const rounds = variant.rounds.map((round) => ({
      ...round,
      phases: round.phases.map((phase) => ({ ...phase, perRequest })),
    }));
    Object.assign(variant, { rounds });
    expect(whyLines(made)[0]).toContain(
      `open-file-cache opens a connection for each request, ${text}`,
    );
    // It is a cause as well where both servers wait for something else than the CPU.
    for (const side of made.variants) Object.assign(side, { serverShare: 0.2 });
    expect(whyLines(made)[0]).toContain('open-file-cache opens a connection for each request');
  });

  it("names the function with the largest share of the server's own code", () => {
    const made = looked(plain, { ...plain, cpu: { ...plain.cpu, 'own code': 30 } });
    Object.assign(made.why?.sides[1] ?? {}, { functions: [{ name: 'mixed', us: 20 }] });
    expect(whyLines(made)[0]).toContain(
      'spends 30.0 µs more CPU time per request in own code (most in mixed) than workers',
    );
  });

  it('names no part of the CPU time for requests/s of servers that all had time left', () => {
    const made = looked(plain, { ...plain, cpu: { ...plain.cpu, 'own code': 30 } });
    const cpu = { ratio: 1.5, ci95: [1.4, 1.6] as [number, number], verdict: 'none' as const };
    const slower = compared(made, { ratio: 0.6, verdict: 'slower', cpu });
    const sentences = (serverShare: number) => {
      for (const variant of slower.variants)
        Object.assign(variant, { serverShare, generatorShare: 0.3 });
      return whyLines(slower);
    };
    expect(sentences(0.95)[0]).toContain('more CPU time per request in own code');
    expect(sentences(0.2)).toEqual([
      'Why: CPU time does not explain it, since open-file-cache and workers wait for something else.',
    ]);
  });

  it('reports that a side waits if CPU time does not explain the difference', () => {
    const made = looked(plain, plain);
    const cpu = { ratio: 1.01, ci95: [1, 1.02] as [number, number], verdict: 'none' as const };
    const slower = compared(made, { ratio: 0.5, verdict: 'slower', cpu });
    Object.assign(slower.variants[1] ?? {}, { serverShare: 0.2 });
    expect(whyLines(slower)).toEqual([
      'Why: CPU time does not explain it, since open-file-cache waits for something else.',
    ]);
  });
});

it('reports missing data once', () => {
  const missing = ['no perf', 'no perf'];
  expect(whyLines(result([workers, openFileCache], { why: { missing, sides: [] } }))).toEqual([
    'Causes were not looked at: no perf.',
  ]);
  expect(whyLines(result([workers, openFileCache]))).toEqual([]);
  const seen = looked(plain, plain);
  Object.assign(seen.why ?? {}, { missing: ['bakeoff did not start a on this machine'] });
  expect(whyLines(seen).at(-1)).toBe(
    'Some causes were not looked at: bakeoff did not start a on this machine.',
  );
});

it.each([
  [[], true],
  [['quick'], false],
  [['quick', 'why'], true],
  [['no-why'], false],
  [['metric=p99'], true],
  [['metric=memory'], false],
  [['metric=memory', 'why'], true],
])('with %j the causes are looked at: %j', (given, asked) => {
  const flags = new Map(given.map((flag) => flag.split('=') as [string, string]));
  expect(isAsked(flags)).toBe(asked);
});

it('the time of the look is known before the rounds: a start and a load for each side, and those with perf', async () => {
  const scenario = await findScenario('nginx-open-file-cache');
  const plan = planOf(scenario, {}, { variants: scenario.variants.slice(0, 2) });
  const seconds = (...flags: string[]) =>
    expectedLook(plan, new Map(flags.map((flag) => [flag, ''])), 4);
  const took = estimatedSeconds(plan, 4);
  expect(seconds('no-why')).toBeCloseTo(2 * 1.5 + Math.min(took / 6, 20), 9);
  const withPerf = process.getuid?.() === 0 ? 2 * 2.5 : 0;
  expect(seconds()).toBeCloseTo(seconds('no-why') + withPerf, 9);
  expect(seconds('no-look')).toBe(0);
  // What has no verdict is loaded for its causes alone.
  const [, judged] = plan.variants;
  const { secondsOf, takes } = lengthOfLook(plan, {
    sides: plan.variants,
    asksWhy: true,
    shareOfTime: 1 / 3,
    tookSeconds: took,
    isJudged: (side) => side === judged,
  });
  expect(plan.variants.map(secondsOf)).toEqual([0, expect.closeTo(Math.min(took / 6, 10), 9)]);
  expect(plan.variants.map(takes)).toEqual([
    6,
    expect.closeTo(1.5 + 2.5 + Math.min(took / 6, 10), 9),
  ]);
  // A server of one's own may do something each 10 s.
  const variants = scenario.variants
    .slice(0, 2)
    .map((variant) => ({ ...variant, server: command('node a.js') }));
  const own = planOf({ ...scenario, variants }, {});
  const ofOwn = (...flags: string[]) =>
    expectedLook(own, new Map(['no-why', ...flags].map((flag) => [flag, ''])), 4);
  expect(ofOwn()).toBe(2 * (1.5 + 10));
  const ownTook = estimatedSeconds(own, 4);
  expect(ofOwn('duration')).toBeCloseTo(2 * 1.5 + ownTook / 3, 9);
});

it('the causes of a load in steps are not looked at', async () => {
  const made = compared(result([workers, openFileCache]), { verdict: 'faster' });
  const ended = (stepped: object | undefined) =>
    ({
      context: {
        contributionsTo: () => {
          throw new Error('it looks');
        },
        plan: {
          stepped,
          variants: [
            {
              variant: { name: 'workers', server: nginx(['base'], { workers: 1 }) },
              load: { requests: 1 },
            },
          ],
        },
      },
      result: made,
      flags: new Map(),
      examined: 'all',
    }) as unknown as EndedRun;
  await expect(lookAfterRounds(ended(undefined))).rejects.toThrow('it looks');
  expect(await lookAfterRounds(ended({}))).toBeUndefined();
});

it('--why is refused with a flag whose loads are made in steps', () => {
  const known = { ...why.run?.flags, climb: { inSteps: true, help: '' } } as const;
  expect(() => readArguments(['--climb', '--why'], known)).toThrow(
    /^--why and --climb do not go together/,
  );
  expect(readArguments(['--climb', '--no-why'], known).flags.has('climb')).toBe(true);
});

it('is not looked for without perf', async () => {
  const context = { plan: { scenario: {}, cores: {} }, folder: newFolder() };
  const looked = await lookAlone(
    { ...context, signal: new AbortController().signal } as unknown as LoadContext,
    {
      sides: [],
      secondsOf: () => 0,
      perf: new UserError('no perf'),
      cpuMicrosOf: () => undefined,
      onSide: () => undefined,
    },
  );
  expect(looked.why).toEqual({ missing: ['no perf'], sides: [] });
});

it('is below the table that it explains', async () => {
  const page = await htmlReport(
    looked(plain, { calls: { writev: 1 }, cpu: { writev: 5 } }),
    additions.contributionsTo(looked(plain, { calls: { writev: 1 }, cpu: { writev: 5 } })),
    [],
  );
  expect(page.indexOf('<h2>Why</h2>')).toBeGreaterThan(page.indexOf('<h2>The table</h2>'));
});

it('the tables show each part, the difference and the sum', () => {
  const [part] = whyPart(looked(plain, { calls: { writev: 1 }, cpu: { writev: 5, libc: 12 } }));
  const rows = part?.tables[1]?.rows.map((cells) => cells.map(cellText));
  expect(rows).toEqual([
    ['writev', '6.0', '5.0', expect.stringMatching(/^−1\.00 ± 0\.4/)],
    ['openat', '2.0', '', '−2.00 ± 0.10'],
    ['libc', '12.0', '12.0', expect.stringMatching(/^0\.00 ± /)],
    ['all', '20.0', '17.0', expect.stringMatching(/^−3\.00/)],
  ]);
  expect(whyPart(result([workers, openFileCache]))).toEqual([]);
});

it('the bars show seven parts and the rest', () => {
  const cpu = Object.fromEntries(
    Array.from({ length: 10 }, (_, index) => [`part ${index}`, 10 - index]),
  );
  const { names, bars } = cpuBars(looked({ cpu }, { cpu }));
  expect(names).toEqual([...Object.keys(cpu).slice(0, 7), 'the rest']);
  expect(bars[0]).toMatchObject({ variant: 'workers', us: 55 });
  expect(bars[0]?.parts.at(-1)).toEqual({ name: 'the rest', us: 6 });
});

it('a differential flame graph shows vanished frames, and escapes names', () => {
  const now = { variant: 'b', folded: 'main;write_[k] 30\nmain;a<b 10\n', us: 4 };
  const before = { variant: 'a', folded: 'main;write_[k] 30\nmain;open_[k];path_[k] 30\n', us: 6 };
  const titles = [...flameGraph(now, before).text.matchAll(/<title>(.*?)<\/title>/g)].map(
    ([, text]) => text,
  );
  expect(titles).toEqual([
    'all: 6.0 → 4.0 µs',
    'main: 6.0 → 4.0 µs',
    'a&lt;b: 0.00 → 1.0 µs',
    'open: 3.0 → 0.00 µs',
    'path: 3.0 → 0.00 µs',
    'write: 3.0 → 3.0 µs',
  ]);
  expect(flameGraph(now).text).toContain('<title>write: 3.0 µs</title>');
});

it('names the changed settings, without values, if they are few', () => {
  const config = (variant: string, ...lines: string[]) => ({
    variant,
    file: 'nginx.conf',
    text: `http {\n    gzip on;\n${lines.map((line) => `    ${line}\n`).join('')}}\n`,
  });
  const changed = (...lines: string[]) =>
    changedSettings(
      result([workers, openFileCache]),
      [config('workers', 'auth secret;'), config('open-file-cache', ...lines)],
      'open-file-cache',
    );
  expect(changed('auth other;')).toEqual(['auth']);
  expect(changed('auth secret;', 'a 1;', 'b 2;')).toEqual(['a', 'b']);
  expect(changed('auth secret;', 'a 1;', 'b 2;', 'c 3;')).toEqual([]);
  expect(changed('auth secret;')).toEqual([]);
});

it('draws deep stacks up to the maximum number of rows', () => {
  const deep = Array.from({ length: 20_000 }, (_, frame) => `f${frame}`).join(';');
  const side = { variant: 'a', folded: `${deep} 3\n`, us: 3 };
  const { text } = flameGraph(side, { ...side, variant: 'b' });
  expect(text.match(/<title>/g)).toHaveLength(60);
});
