import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Clock } from '../../lib/machine/clock.ts';
import {
  bodiesDiffer,
  clockStepIn,
  gapIn,
  otherBodiesIn,
  standstillIn,
  throttlingIn,
} from '../../lib/runner/disturbance.ts';
import type { Phase } from '../../lib/result/result.ts';
import {
  sampleUsage,
  usageBetween,
  type UsageReaders,
  type UsageSampler,
  type UsageWindow,
} from '../../lib/runner/samples.ts';
import { nginx } from '../../lib/scenario/index.ts';
import { noLatency, phase } from '../fixtures/phase.ts';

/** Samples each 100 ms from `fromMs` on, without those of the gaps. */
function every100(
  fromMs: number,
  toMs: number,
  ...gaps: readonly (readonly [number, number])[]
): { atMs: number }[] {
  const instants = Array.from({ length: (toMs - fromMs) / 100 + 1 }, (_, index) => ({
    atMs: fromMs + 100 * index,
  }));
  return instants.filter(({ atMs }) => !gaps.some(([from, to]) => atMs > from && atMs < to));
}

const tenSeconds: UsageWindow = { fromMs: 1050, toMs: 11_050, idleBefore: false };

describe('a gap in the samples', () => {
  test.each<[string, { atMs: number }[], UsageWindow, RegExp | undefined]>([
    ['none', every100(0, 12_000), tenSeconds, undefined],
    ['at the begin', every100(0, 12_000, [500, 2600]), tenSeconds, /for 2\.10 s of the load/],
    ['at the end', every100(0, 14_000, [11_000, 13_100]), tenSeconds, /for 2\.10 s of the load/],
    [
      'within, shorter than tasks are looked up',
      every100(0, 12_000, [3000, 5000]),
      tenSeconds,
      undefined,
    ],
    [
      'within',
      every100(0, 12_000, [3000, 5100]),
      tenSeconds,
      /^nothing was sampled for 2\.10 s of the load: bakeoff was stopped .* leave it running/,
    ],
    [
      'over all of it',
      every100(0, 40_000, [1000, 21_000]),
      { ...tenSeconds, fromMs: 5000, toMs: 15_000 },
      /for 20\.00 s/,
    ],
    ['before and after it', every100(0, 30_000, [0, 900], [11_100, 20_000]), tenSeconds, undefined],
    [
      'no sample before it',
      every100(1100, 12_000),
      tenSeconds,
      /not sampled from its begin to its end/,
    ],
    [
      'no sample after it',
      every100(0, 11_000),
      tenSeconds,
      /not sampled from its begin to its end/,
    ],
    ['no sample', [], tenSeconds, /not sampled/],
    [
      'bounds that nobody told',
      every100(0, 12_000),
      { fromMs: NaN, toMs: NaN, idleBefore: false },
      /not sampled/,
    ],
  ])('%s', (_, samples, window, message) => {
    const found = gapIn(samples, window);
    if (message === undefined) expect(found).toBeUndefined();
    else expect(found).toMatch(message);
  });
});

describe('a step of the wall clock', () => {
  const at = (...aheadMs: number[]): { wallAheadMs: number }[] =>
    aheadMs.map((wallAheadMs) => ({ wallAheadMs }));

  test.each<[string, { wallAheadMs: number }[], RegExp | undefined]>([
    ['none, but for what readings are apart', at(1e12, 1e12 + 49, 1e12 - 50), undefined],
    [
      'an hour back',
      at(1e12, 1e12 - 3_600_000, 1e12 - 3_600_000),
      /^the machine's clock was set back by 3600\.00 s during the load, or the machine was suspended: /,
    ],
    ['there and back again', at(1e12, 1e12 + 60, 1e12), /set forward by 60\.00 ms/],
    ['no sample', [], undefined],
  ])('%s', (_, samples, message) => {
    const found = clockStepIn(samples);
    if (message === undefined) expect(found).toBeUndefined();
    else expect(found).toMatch(message);
  });
});

describe('the sampler', () => {
  beforeEach(() => {
    vi.useFakeTimers({
      toFake: [
        'setTimeout',
        'clearTimeout',
        'setInterval',
        'clearInterval',
        'performance',
        'hrtime',
        'Date',
      ],
    });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  const wall = { stepMs: 0 };
  const clock: Clock = {
    monotonicMs: () => performance.now(),
    wallMs: () => 1e12 + performance.now() + wall.stepMs,
  };
  /** A server that uses half a core. */
  const readers: UsageReaders = {
    clock,
    servers: [
      { usage: () => ({ cpuSeconds: performance.now() / 2000, rssBytes: 1 }), stoppedPid: () => 7 },
    ],
    shared: () => ({
      generatorCpuSeconds: 0,
      linkToServerCpuSeconds: 0,
      upstreamCpuSeconds: 0,
      throttling: { times: 0, ms: 0 },
      machine: { server: null, generator: null, loadAverage: 0, serverMhz: null },
    }),
  };
  const started: UsageSampler[] = [];
  const start = (changes: Partial<UsageReaders> = {}): UsageSampler => {
    const sampler = sampleUsage({ ...readers, ...changes });
    started.push(sampler);
    return sampler;
  };
  afterEach(() => {
    for (const one of started.splice(0)) one.stop();
    wall.stepMs = 0;
  });

  test.each([3_600_000, -3_600_000])(
    'keeps the CPU time within the window right while the wall clock is set by %i ms, and tells it',
    (stepMs) => {
      const sampler = start();
      const beganMs = performance.now();
      vi.advanceTimersByTime(5000);
      wall.stepMs = stepMs;
      vi.advanceTimersByTime(7000);
      sampler.stop();
      const window = { fromMs: beganMs + 1050, toMs: beganMs + 11_050, idleBefore: false };
      expect(usageBetween(sampler.samplesOf(0), window).cpuSeconds).toBeCloseTo(5, 1);
      expect(gapIn(sampler.samplesOf(0), window)).toBeUndefined();
      expect(clockStepIn(sampler.samplesOf(0))).toContain('by 3600.00 s');
    },
  );

  test('takes a last sample when it is stopped', () => {
    const sampler = start();
    const beganMs = performance.now();
    vi.advanceTimersByTime(250);
    sampler.stop();
    vi.advanceTimersByTime(1000);
    expect(sampler.samplesOf(0).map((sample) => sample.atMs - beganMs)).toEqual([0, 100, 200, 250]);
  });

  test('looks for a stopped process while the server uses nothing, less often with two servers', () => {
    let cpuSeconds = 1;
    const other = {
      usage: () => ({ cpuSeconds: 2 * cpuSeconds, rssBytes: 3 }),
      stoppedPid: () => undefined,
    };
    const sampler = start({
      servers: [{ usage: () => ({ cpuSeconds, rssBytes: 1 }), stoppedPid: () => 7 }, other],
    });
    vi.advanceTimersByTime(200);
    cpuSeconds = 2;
    vi.advanceTimersByTime(200);
    expect(sampler.samplesOf(0).map(({ stoppedPid }) => stoppedPid)).toEqual([
      undefined,
      7,
      undefined,
    ]);
    expect(
      sampler
        .samplesOf(1)
        .map((sample) => [
          sample.cpuSeconds,
          sample.serversCpuSeconds,
          sample.rssBytes,
          sample.stoppedPid,
        ]),
    ).toEqual([
      [2, 3, 3, undefined],
      [2, 3, 3, undefined],
      [4, 6, 3, undefined],
    ]);
  });
});

test('memory of millions of samples is read', () => {
  const samples = Array.from({ length: 200_000 }, (_, atMs) => ({
    atMs,
    cpuSeconds: 0,
    rssBytes: atMs,
  }));
  expect(usageBetween(samples, { fromMs: 0, toMs: 199_999, idleBefore: true }).rssBytes).toBe(
    199_999,
  );
});

describe('a quota', () => {
  const samples = [
    [0, 3, 10],
    [1000, 3, 10],
    [2000, 5, 42],
    [3000, 5, 42],
    [4000, 9, 100],
  ].map(([atMs, times, ms]) => ({
    atMs: atMs as number,
    throttling: { times: times as number, ms: ms as number },
  }));
  const during = (fromMs: number, toMs: number): string | undefined =>
    throttlingIn(samples, { fromMs, toMs, idleBefore: false }, '/sys/fs/cgroup/cpu.max: 1.5 cores');

  test('that held the run back within the window is told with its file and what to do', () => {
    expect(during(1100, 2900)).toBe(
      'a CPU quota held the run back 2 times, for 32.00 ms, during the load (/sys/fs/cgroup/cpu.max: 1.5 cores): ' +
        "take the quota away (cpu.max; docker run --cpus, a pod's limits.cpu), or give it more than the cores that bakeoff uses",
    );
  });

  test('that did so for a thousandth of the window at most is not', () => {
    const held = (ms: number): string | undefined =>
      throttlingIn(
        [
          [0, 0, 0],
          [10_000, 4, ms],
        ].map(([atMs, times, sum]) => ({
          atMs: atMs as number,
          throttling: { times: times as number, ms: sum as number },
        })),
        { fromMs: 0, toMs: 10_000, idleBefore: false },
        '',
      );
    expect(held(10)).toBeUndefined();
    expect(held(10.1)).toContain('held the run back 4 times, for 10.10 ms');
  });

  test('that did so before or after it is not', () => {
    expect([
      during(100, 900),
      during(2000, 3000),
      throttlingIn([], { fromMs: 0, toMs: 1, idleBefore: true }, ''),
    ]).toEqual([undefined, undefined, undefined]);
  });
});

describe('a server that stood still', () => {
  const window = { fromMs: 0, toMs: 10_000, idleBefore: false };
  const samples = [
    { atMs: 100, stoppedPid: undefined },
    { atMs: 5000, stoppedPid: 4711 },
    { atMs: 20_000, stoppedPid: 4712 },
  ];
  const stood = (
    longestGapMs: number,
    p99: number,
    seen = samples,
    alarm?: string,
    firstByteP50 = 1,
  ): string | undefined => {
    const one = phase({ requests: 1000, longestGapMs });
    return standstillIn(
      {
        ...one,
        latencyMs: { ...one.latencyMs, p99 },
        firstByteMs: { ...one.firstByteMs, p50: firstByteP50 },
      },
      seen,
      window,
      'nginx',
      alarm,
    );
  };

  test.each([
    [1250, 1, false],
    [1251, 1, true],
    [4999, 500, false],
    [5001, 500, true],
    [5, 0, false],
  ])('gap %i ms, p99 %i ms: %s', (gapMs, p99, tells) => {
    expect(stood(gapMs, p99) !== undefined).toBe(tells);
  });

  test('is named, with why where that is known', () => {
    expect(stood(3200, 2)).toBe(
      'nginx stood still: no response came for 3.20 s while requests were under way; its process 4711 was stopped (state T): have it go on (kill -CONT 4711), and leave it without a debugger',
    );
    expect(stood(3200, 2, [], '[alert] x')).toContain('; its log says: [alert] x');
    expect(stood(3200, 2, samples.slice(2))).toContain('why is not known');
  });

  test('in a window of its own that is shorter, and over without an answer', () => {
    const short = (longestGapMs: number, changes: Partial<Phase> = {}): string | undefined =>
      standstillIn(
        { ...phase({ requests: 0, latencyMs: noLatency, seconds: 0.2, longestGapMs }), ...changes },
        [],
        window,
        'nginx',
        undefined,
      );
    expect(short(190)).toMatch(
      /^nginx stood still: no response came for 190\.00 ms of its 200\.00 ms while requests were under way; /,
    );
    expect(short(100)).toBeUndefined();
    expect(short(190, { responses: { '2xx': 1, '3xx': 0, '4xx': 0, '5xx': 0 } })).toBeUndefined();
    expect(short(190, { errors: { ...phase({ requests: 0 }).errors, total: 1 } })).toBeUndefined();
    expect(short(1200, { seconds: 10 })).toBeUndefined();
    expect(short(1300, { seconds: 10 })).toContain('for 1.30 s of its 10.00 s while');
  });

  test('is not named where connections themselves take as long, as a thousand handshakes at once', () => {
    expect(stood(3200, 2, samples, undefined, 320)).toBeUndefined();
    expect(stood(3200, 2, samples, undefined, 319)).toBeDefined();
  });

  test('is not named where the network lost packets, which TCP sends again after a second and more', () => {
    const link = { retransmits: { client: 0, server: 1 } };
    const made = phase({ requests: 10, longestGapMs: 3000, network: link as never });
    const one = { ...made, firstByteMs: { ...made.firstByteMs, p50: 1 } };
    expect(standstillIn(one, [], window, 'nginx', undefined)).toBeUndefined();
    link.retransmits.server = 0;
    expect(standstillIn(one, [], window, 'nginx', undefined)).toContain('3.00 s');
  });
});

describe('bodies', () => {
  const answered = (responses: Record<string, number>, body: number): number | undefined => {
    const one = phase({ requests: 1000 });
    return otherBodiesIn(
      {
        responses: { '2xx': 0, '3xx': 0, '4xx': 0, '5xx': 0, ...responses },
        bytes: { ...one.bytes, body },
        inFlight: 0,
      },
      { bytes: 612 },
    );
  };

  test.each<[string, Record<string, number>, number, number | undefined]>([
    ['of the page', { '2xx': 1000 }, 612_000, undefined],
    ['one shorter by a byte', { '2xx': 1000 }, 611_999, 611.999],
    ['longer ones', { '2xx': 2 }, 2000, 1000],
    ['of failures among them', { '2xx': 999, '5xx': 1 }, 5, undefined],
    ['none', {}, 0, undefined],
    ['not modified', { '3xx': 10 }, 0, undefined],
  ])('%s', (_, responses, body, meanBytes) => {
    expect(answered(responses, body)).toBe(meanBytes);
  });

  test('of a page without any, as it answers to HEAD', () => {
    const one = phase({ requests: 10 });
    expect(
      otherBodiesIn({ ...one, bytes: { ...one.bytes, body: 0 } }, { bytes: 0 }),
    ).toBeUndefined();
  });

  test.each([
    [614_999, 0, undefined],
    [618_000, 0, 618],
    [611_000, 0, undefined],
    [600_000, 0, 600],
    [600_000, 60, undefined],
  ])('of several pages: %i bytes, %i in flight', (body, inFlight, meanBytes) => {
    const one = phase({ requests: 1000, responses: { '2xx': 1000, '3xx': 0, '4xx': 0, '5xx': 0 } });
    // Five times 30 × √1000 are 4,743.
    expect(
      otherBodiesIn(
        { ...one, inFlight, bytes: { ...one.bytes, body } },
        { bytes: 612.5, sdBytes: 30 },
      ),
    ).toBe(meanBytes);
  });

  test("of a config of one's own differ where they do in any phase by more than a percent", () => {
    const variant = {
      name: 'mine',
      server: { name: 'address' as const, origin: 'http://127.0.0.1:1' },
    };
    const phases = (...lengths: number[]): Phase[] =>
      lengths.map((length) => {
        const one = phase({ requests: 1000 });
        return { ...one, bytes: { ...one.bytes, body: 1000 * length } };
      });
    expect(
      [[600], [605], [607], [605, 607], [600, 594, 500]].map((lengths) =>
        bodiesDiffer({ variant }, phases(...lengths), { bytes: 600 }),
      ),
    ).toEqual([false, false, true, true, true]);
    const shipped = { name: 'shipped', server: nginx(['base'], { workers: 1 }) };
    expect(() => bodiesDiffer({ variant: shipped }, phases(600, 605), { bytes: 600 })).toThrow(
      'shipped: bodies had 605.00 B on average, and the page has 600 B: it changed during the load',
    );
  });
});
