import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  interruptsApart,
  machineClock,
  watchMachine,
  type CoreSeconds,
  type MachineReading,
} from '../../lib/machine/usage.ts';
import type { RemoteSample } from '../../lib/servers/index.ts';
import { watchProcess } from '../../lib/servers/usage.ts';
import {
  mostTaken,
  noiseBetween,
  sampleUsage,
  usageBetween,
  withServer,
  type NoiseCores,
  type UsageReaders,
  type UsageSample,
  type UsageSampler,
} from '../../lib/runner/samples.ts';
import type { Noise } from '../../lib/result/result.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import os from 'node:os';

let folder: string;
beforeEach(() => {
  folder = newFolder();
});

function write(file: string, text: string | Buffer) {
  mkdirSync(join(folder, file, '..'), { recursive: true });
  writeFileSync(join(folder, file), text);
}

describe('watchMachine', () => {
  const watch = (serverCpus: readonly number[], generatorCpus: readonly number[]) =>
    watchMachine(serverCpus, generatorCpus, folder);

  test('sums the cores of each side, in seconds', () => {
    const lines = [
      'cpu  9 9 9 9 9 9 9 9 9 9',
      'cpu0 100 200 300 400 500 600 700 800 50 60',
      'cpu1 1 2 3 4 5 6 7 8 0 0',
      'cpu10 1000 0 0 0 0 0 0 0 0 0',
    ];
    write('proc/stat', `${lines.join('\n')}\nbtime 1\n`);
    const { server, generator } = watch([1, 10], [0])();
    expect(generator).toEqual({ processes: 6, interrupts: 13, steal: 8, idle: 9 });
    expect(server?.processes).toBeCloseTo(10.06, 9);
  });

  test('reports nothing if a core does not exist', () => {
    write('proc/stat', 'cpu0 1 1 1 1 1 1 1 1\n');
    const reading = watch([0, 1], [0, 1])();
    expect(reading).toMatchObject({ server: null, generator: null, serverMhz: null });
    expect(reading.loadAverage).toBeGreaterThanOrEqual(0);
  });

  test('reads the clock twice a second at most, from cpufreq or /proc/cpuinfo', () => {
    const now = vi.spyOn(performance, 'now').mockReturnValue(1000);
    const cpus = [1000.5, 3000.5].map((mhz, cpu) => `processor\t: ${cpu}\ncpu MHz\t\t: ${mhz}\n\n`);
    write('proc/cpuinfo', cpus.join(''));
    const read = watch([0, 1], [0]);
    expect(read().serverMhz).toBe(2000.5);
    now.mockReturnValue(1499);
    expect(read().serverMhz).toBeUndefined();
    const writeClock = (cpu: number, khz: string) =>
      write(`sys/devices/system/cpu/cpu${cpu}/cpufreq/scaling_cur_freq`, `${khz}\n`);
    writeClock(0, '2500000');
    writeClock(1, '3500000');
    now.mockReturnValue(1500);
    expect(read().serverMhz).toBe(3000);
    writeClock(0, '<unknown>');
    write('proc/cpuinfo', 'processor : 0\n\nprocessor : 1\n\n');
    now.mockReturnValue(2000);
    expect(read().serverMhz).toBeNull();
  });
});

const noQuota = { quotaThrottledMs: 0, quotas: '' };
const asked = () => interruptsApart(folder);

test('interruptsApart is read from the config of the running kernel', () => {
  expect(asked()).toBeUndefined();
  write(`boot/config-${os.release()}`, 'CONFIG_A=y\nCONFIG_IRQ_TIME_ACCOUNTING=y\n');
  expect(asked()).toBe(true);
  write(
    'proc/config.gz',
    gzipSync('# CONFIG_IRQ_TIME_ACCOUNTING is not set\nCONFIG_HAVE_IRQ_TIME_ACCOUNTING=y\n'),
  );
  expect(asked()).toBe(false);
});

test('watchProcess keeps the usage of a process that has ended', () => {
  write('proc/7/stat', '7 (k6 (x) y) S 1 7 7 0 -1 0 0 0 0 0 150 50 0 0 20 0 9 0 1 1 1\n');
  const used = watchProcess(7, join(folder, 'proc'));
  expect(used()).toBe(2);
  rmSync(join(folder, 'proc/7'), { recursive: true });
  expect(used()).toBe(2);
  expect(watchProcess(8, join(folder, 'proc'))()).toBe(0);
  expect(watchProcess(process.pid)()).toBeGreaterThan(0);
});

describe('noise', () => {
  const nothing: CoreSeconds = { processes: 0, interrupts: 0, steal: 0, idle: 0 };
  const apart: NoiseCores = {
    server: 1,
    generator: 1,
    shared: false,
    interruptsApart: true,
    hasUpstreams: false,
  };
  const window = { fromMs: 1000, toMs: 3000 };

  interface Used {
    server?: Partial<CoreSeconds>;
    generator?: Partial<CoreSeconds>;
    ours?: number;
    generatorCpu?: number;
    link?: number;
    upstream?: number | null;
  }

  function samples(perSecond: Used, machine: Partial<MachineReading> = {}): UsageSample[] {
    const times = (second: number, part: Partial<CoreSeconds> = {}): CoreSeconds => {
      const seconds = { ...nothing, idle: 0.1, ...part };
      for (const kind of Object.keys(nothing) as (keyof CoreSeconds)[]) seconds[kind] *= second;
      return seconds;
    };
    const { ours = 0, generatorCpu = 0, link = 0, upstream = 0 } = perSecond;
    return [0, 1, 2, 3, 4].map((second) => ({
      atMs: second * 1000,
      wallAheadMs: 0,
      throttledMs: 0,
      generatorStopped: false,
      upstreamCpuSeconds: upstream === null ? null : upstream * second,
      cpuSeconds: (ours * second) / 2,
      serversCpuSeconds: ours * second,
      waitedSeconds: 0,
      rssBytes: 1,
      ...noQuota,
      stopped: false,
      generatorCpuSeconds: generatorCpu * second,
      enclosureCpuSeconds: link * second,
      machine: {
        server: times(second, perSecond.server),
        generator: times(second, perSecond.generator),
        loadAverage: second,
        serverMhz: 2000 + second,
        ...machine,
      },
    }));
  }

  const near = (value: number): unknown => expect.closeTo(value, 9);

  test.each<[string, Used, Partial<NoiseCores>, Partial<Record<keyof Noise, unknown>>]>([
    [
      "shares of each side's cores, the load average at the end, and the clock within the window",
      { server: { processes: 1.5, steal: 0.2 }, generator: { steal: 0.3 }, ours: 1 },
      { server: 2, generator: 3 },
      {
        serverStealShare: near(0.1),
        generatorStealShare: near(0.1),
        serverOthersShare: near(0.25),
        loadAverage: 3,
        serverMhz: [2001, 2003],
      },
    ],
    [
      "the link as our own on the server's cores",
      { server: { processes: 0.9 }, ours: 0.5, link: 0.3 },
      {},
      { serverOthersShare: near(0.1) },
    ],
    [
      'the generator on its own cores',
      { generator: { processes: 0.9 }, generatorCpu: 0.6 },
      {},
      { generatorOthersShare: near(0.3) },
    ],
    [
      'a backend apart from others',
      { server: { processes: 0.9 }, ours: 0.5, upstream: 0.3 },
      { hasUpstreams: true },
      { serverOthersShare: near(0.1), upstreamShare: near(0.3) },
    ],
    [
      'an unknown backend among others',
      { server: { processes: 0.9 }, ours: 0.5, upstream: null },
      { hasUpstreams: true },
      { serverOthersShare: near(0.4), upstreamShare: null },
    ],
    [
      'shares between 0 and 1',
      { server: { processes: 0.5, steal: 7 }, ours: 1 },
      {},
      { serverOthersShare: 0, serverStealShare: 1 },
    ],
  ])('has %s', (_, used, cores, expected) => {
    const noise = noiseBetween(samples(used), window, { ...apart, ...cores });
    expect(noise).toMatchObject(expected);
    if (cores.hasUpstreams !== true) expect(noise).not.toHaveProperty('upstreamShare');
  });

  test("has the cores of the server's host and of this generator", () => {
    const local = samples({ server: { processes: 9, steal: 9 }, generator: { steal: 0.3 } });
    const used = { server: { processes: 0.9, steal: 0.2 }, ours: 1 };
    // Times are by the local clock; every other sample has a reading of the machine.
    const remote = samples(used, { loadAverage: 7 }).map(
      ({ atMs, cpuSeconds, machine }, index): RemoteSample => ({
        atMs: atMs + 50,
        cpuSeconds,
        waitedSeconds: atMs / 1e4,
        rssBytes: 5,
        quotaThrottledMs: atMs / 10,
        quotas: '/cpu.max: 1 core',
        stopped: index === 1,
        ...(index % 2 === 0 ? { machine: { ...machine, generator: null } } : {}),
      }),
    );
    const [first, second] = [0, 1].map((place) => withServer(local, [remote, remote], place));
    expect(first).toEqual(second);
    expect(first?.map(({ stopped }) => stopped)).toEqual([false, false, true, false, false]);
    expect(first?.[2]).toMatchObject({
      cpuSeconds: near(0.975),
      waitedSeconds: near(0.195),
      quotaThrottledMs: near(195),
      quotas: '/cpu.max: 1 core',
      rssBytes: 5,
      serversCpuSeconds: near(1.95),
    });
    expect(noiseBetween(first ?? [], window, apart)).toMatchObject({
      serverStealShare: near(0.2),
      generatorStealShare: near(0.3),
      serverOthersShare: 0,
      loadAverage: 7,
      serverMhz: [2000, 2002],
    });
    const alone = noiseBetween(withServer(local, [remote], 0), window, apart);
    expect(alone?.serverOthersShare).toBeCloseTo(0.4, 9);
    expect(withServer(local, [undefined, remote], 0)).toEqual(local);
    const silent = remote.map(({ machine: _, ...sample }): RemoteSample => sample);
    expect(noiseBetween(withServer(local, [silent], 0), window, apart)).toBeNull();
  });

  test.each([
    ['seen to be in ours', 0.55, 0.15],
    ['ours more by what ticks are wrong by', 0.59, 0],
  ])('with interrupts (0.2 of the time) that are %s', (_, processes, others) => {
    const used = samples({ server: { processes, interrupts: 0.2 }, ours: 0.6 });
    const noise = noiseBetween(used, window, { ...apart, interruptsApart: undefined });
    expect(noise?.serverOthersShare).toBeCloseTo(others, 9);
  });

  test('uses the nearest clock reading in a short window, none if unknown', () => {
    expect(noiseBetween(samples({}, { serverMhz: null }), window, apart)?.serverMhz).toBeNull();
    const short = noiseBetween(samples({}), { fromMs: 1100, toMs: 1200 }, apart);
    expect(short?.serverMhz).toEqual([2001, 2001]);
  });

  test("is the server's if others had its cores while it waited for them", () => {
    const used = (waitedSeconds: number, cpuPerSecond = 0) =>
      samples({ server: { processes: 0.1 } }).map((sample) => {
        const { server } = sample.machine;
        // 0.8 s more, in the second that begins at 1 s.
        const processes = (server?.processes ?? 0) + (sample.atMs > 1000 ? 0.8 : 0);
        return {
          ...sample,
          waitedSeconds: sample.atMs > 1000 ? waitedSeconds : 0,
          cpuSeconds: (cpuPerSecond * sample.atMs) / 1000,
          machine: { ...sample.machine, server: { ...nothing, processes } },
        };
      });
    const taken = (ms: number, seen: UsageSample[]) => mostTaken(ms, seen, window, apart, 1);
    expect(taken(500, used(1))).toBeCloseTo(0.9, 9);
    expect(taken(1000, used(1))).toBeCloseTo(0.9, 9);
    expect(taken(2000, used(1))).toBeCloseTo(0.5, 9);
    // A server that works meanwhile only shares them.
    expect(taken(1000, used(1, 0.2))).toBe(0);
    // A server that stalls leaves its cores to others.
    expect(taken(1000, used(0))).toBe(0);
    expect(taken(500, samples({}, { server: null }))).toBe(0);
  });

  test('is null if the kernel does not count the time', () => {
    for (const used of [
      samples({}, { server: null }),
      samples({}, { generator: null }),
      samples({ server: { idle: 0 } }),
    ])
      expect(noiseBetween(used, window, apart)).toBeNull();
    expect(noiseBetween(samples({}), { fromMs: 1000, toMs: 1000 }, apart)).toBeNull();
  });
});

describe('usageBetween', () => {
  const samples = [
    { atMs: 1000, cpuSeconds: 0, rssBytes: 10 },
    { atMs: 1100, cpuSeconds: 0.05, rssBytes: 30 },
    { atMs: 1200, cpuSeconds: 0.15, rssBytes: 20 },
    { atMs: 1300, cpuSeconds: 0.15, rssBytes: 90 },
  ];

  test.each([
    [false, 1100, 1250, 0.1],
    [false, 1250, 9999, 0],
    [true, 1050, 1250, 0.15],
  ])('idle before: %s, from %i to %i ms: %f s', (idleBefore, fromMs, toMs, expected) => {
    const { cpuSeconds } = usageBetween(samples, { fromMs, toMs, idleBefore });
    expect(cpuSeconds).toBeCloseTo(expected, 12);
  });

  test('takes the maximum of memory in the window, of any number of samples', () => {
    const most = (fromMs: number, toMs: number) =>
      usageBetween(samples, { fromMs, toMs, idleBefore: false }).rssBytes;
    expect([most(1000, 1200), most(1110, 1120)]).toEqual([30, 90]);
    const many = Array.from({ length: 200_000 }, () => samples[3] as (typeof samples)[number]);
    expect(usageBetween(many, { fromMs: 0, toMs: 2000, idleBefore: true }).rssBytes).toBe(90);
  });
});

describe('the sampler', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance', 'hrtime', 'Date'] });
  });
  afterEach(() => {
    for (const sampler of started.splice(0)) sampler.stop();
  });

  const started: UsageSampler[] = [];
  const start = (...servers: UsageReaders['servers'][number][]) => {
    const shared = {
      generatorCpuSeconds: 0,
      enclosureCpuSeconds: 0,
      upstreamCpuSeconds: 0,
      throttledMs: 0,
      generatorStopped: false,
      machine: { server: null, generator: null, loadAverage: 0, serverMhz: null },
    };
    const sampler = sampleUsage({ servers, shared: () => shared });
    started.push(sampler);
    return sampler;
  };
  const used = { cpuSeconds: 0, waitedSeconds: 0, rssBytes: 1, ...noQuota, stopped: false };
  const halfACore = () => ({ ...used, cpuSeconds: performance.now() / 2000 });

  test('what comes between the readings of both clocks is no step of a clock', () => {
    const begin = machineClock.monotonicMs();
    // Something takes 100 ms after the first reading.
    const readings = [0, 100, 100, 100.1].map((ms) => begin + ms);
    const clock = vi.spyOn(machineClock, 'monotonicMs');
    onTestFinished(() => clock.mockRestore());
    clock.mockImplementation(() => readings.shift() ?? begin + 100);
    const wallMs = vi.spyOn(machineClock, 'wallMs').mockReturnValue(begin + 100 + 5);
    onTestFinished(() => wallMs.mockRestore());
    const [first] = start(halfACore).samplesOf(0);
    expect(first?.wallAheadMs).toBeCloseTo(5, 6);
  });

  test('keeps CPU time correct when the wall clock is set back', () => {
    const sampler = start(halfACore);
    vi.advanceTimersByTime(5000);
    vi.setSystemTime(Date.now() - 3_600_000);
    vi.advanceTimersByTime(7000);
    sampler.stop();
    const samples = sampler.samplesOf(0);
    const [first, last] = [samples[0] as UsageSample, samples.at(-1) as UsageSample];
    expect(last.wallAheadMs - first.wallAheadMs).toBeCloseTo(-3_600_000, -1);
    const window = { fromMs: first.atMs + 1050, toMs: first.atMs + 11_050, idleBefore: false };
    expect(usageBetween(samples, window).cpuSeconds).toBeCloseTo(5, 1);
  });

  test('takes a last sample when it is stopped', () => {
    const sampler = start(halfACore);
    vi.advanceTimersByTime(250);
    sampler.stop();
    vi.advanceTimersByTime(1000);
    const [first, ...more] = sampler.samplesOf(0).map(({ atMs }) => Math.round(atMs));
    expect(more.map((atMs) => atMs - (first as number))).toEqual([100, 200, 250]);
  });

  test('has the CPU time of each server and of all', () => {
    let cpuSeconds = 1;
    const sampler = start(
      () => ({ ...used, cpuSeconds }),
      () => ({ ...used, cpuSeconds: 2 * cpuSeconds, rssBytes: 3 }),
    );
    vi.advanceTimersByTime(200);
    cpuSeconds = 2;
    vi.advanceTimersByTime(200);
    const before = { cpuSeconds: 2, serversCpuSeconds: 3, rssBytes: 3 };
    const after = { cpuSeconds: 4, serversCpuSeconds: 6, rssBytes: 3 };
    expect(sampler.samplesOf(1)).toMatchObject([before, before, after]);
  });
});
