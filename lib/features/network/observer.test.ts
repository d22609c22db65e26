import { expect, test, vi } from 'vitest';
import type { LinkCounts, LinkReport } from './network.ts';
import { machineClock } from '../../machine/usage.ts';
import { link as observer, linkTemplates, networkUseBetween, sampleLink } from './observer.ts';
import { sentencesOf } from '../../report/finding-words.ts';
import type { LinkTraffic } from '../../result/network-use.ts';
import { traffic as linkTraffic } from '../../../test/fixtures/link.ts';

/** One packet in ten is dropped. */
function traffic(packets: number): LinkTraffic {
  const [dropped, latenessMs] = [packets * 0.1, { p50: 0.1, p99: 0.4, max: 3 }];
  return { ...linkTraffic(packets, dropped), delivered: packets * 0.9, latenessMs };
}

/** From second 10 on 1,000 packets/s to the server and 500 back. */
function countsAt(atMs: number): LinkCounts {
  const packets = Math.max(0, atMs - 10_000);
  return {
    atMs,
    toServer: traffic(packets),
    toClient: traffic(packets / 2),
    retransmits: { client: packets / 100, server: 0 },
    listenOverflows: packets / 50,
    linkCpuSeconds: { toServer: packets / 10_000, toClient: packets / 20_000 },
  };
}

const { atMs: _, ...all } = countsAt(30_000);
/** The connections are closed at this time. */
const atEnd = { p50: 0.1, p99: 8, max: 20 };
const report: LinkReport = {
  ...all,
  quiet: true,
  deviceDrops: 0,
  toServer: { ...all.toServer, latenessMs: atEnd },
  toClient: { ...all.toClient, latenessMs: atEnd },
};
const samples = Array.from({ length: 160 }, (_, index) => countsAt(9_900 + 100 * index));

test('after a warm-up, usage is counted within the window', () => {
  // Start and end of the window are both between two samples.
  const window = { fromMs: 13_050, toMs: 18_050, idleBefore: false };
  const near = (seconds: number): unknown => expect.closeTo(seconds, 9);
  const { atMs: _, ...in5s } = countsAt(15_000);
  expect(networkUseBetween(samples, report, window)).toEqual({
    ...in5s,
    linkCpuSeconds: { toServer: near(0.5), toClient: near(0.25) },
  });
});

test('without a warm-up, usage is the complete report', () => {
  const { quiet: _, deviceDrops: __, ...figures } = report;
  const window = { fromMs: 10_000, toMs: 29_000, idleBefore: true };
  expect(networkUseBetween(samples, report, window)).toEqual(figures);
});

/** A link whose first packet comes at the third query. */
function link() {
  const asked: string[] = [];
  let open = 0;
  const answer = (word: string) => async (): Promise<LinkCounts> => {
    expect(++open).toBe(1);
    await new Promise(setImmediate);
    open--;
    asked.push(word);
    return { ...countsAt(asked.length < 3 ? 10_000 : 10_001), atMs: machineClock.monotonicMs() };
  };
  const answered = (count: number) =>
    vi.waitUntil(() => asked.length >= count, { interval: 5, timeout: 20_000 });
  return { asked, answered, counts: answer('counts'), mark: answer('mark') };
}

test('the sampler sends one query at a time until it is stopped', async () => {
  const network = link();
  const sampler = sampleLink(network, 0);
  await network.answered(4);
  expect([await sampler.stop(), await sampler.stop()]).toEqual([undefined, undefined]);
  const { length } = sampler.samples;
  expect([length >= 4, network.asked]).toEqual([true, Array(length).fill('counts')]);
});

test('the sampler resets lateness after the warm-up', async () => {
  const network = link();
  const sampler = sampleLink(network, 0.25);
  await network.answered(8);
  await sampler.stop();
  const marked = network.asked.indexOf('mark');
  const [first, mark] = [sampler.samples[2]?.atMs ?? NaN, sampler.samples[marked]?.atMs ?? NaN];
  expect(network.asked.lastIndexOf('mark')).toBe(marked);
  expect(marked).toBeGreaterThan(2);
  expect(mark - first).toBeGreaterThanOrEqual(250);
});

test('the sampler ends with the link and reports that', async () => {
  const ended = () => Promise.reject(new Error('the link ended'));
  const sampler = sampleLink({ counts: ended, mark: ended }, 0);
  for (let time = 0; time < 2; time++)
    expect((await sampler.stop())?.message).toBe('the link ended');
  expect(sampler.samples).toEqual([]);
});

/** What the observer saw of a load of variant "a" in round 3, after which packets were still on their way. */
async function seenAfter(warmupSeconds: number) {
  const network = { ...link(), report: async () => ({ ...report, quiet: false }) };
  const planned = { variant: { name: 'a' }, load: { warmupSeconds } };
  const stages = [{ planned, enclosure: { network } }];
  const observation = await observer.begin({ stages, attempt: { round: 3 } } as never);
  await network.answered(2);
  const [side] = await observation.end([]);
  return side?.enclosed ?? expect.fail('nothing was seen');
}

test('packets that are still on their way are reported, unless they are after the window', async () => {
  const whole = await seenAfter(0);
  expect(sentencesOf(whole.findings, 2, linkTemplates)).toEqual([
    'a: packets were still on their way 10 s after the load of round 3, and are not counted',
  ]);
  expect(whole.samples).toBeUndefined();
  const window = { fromMs: 0, toMs: 1, idleBefore: true };
  expect(whole.within(window)).toMatchObject({ toServer: { packets: 20_000 } });
  const afterWarmup = await seenAfter(1);
  expect(afterWarmup.findings).toEqual([]);
  expect(afterWarmup.samples?.length).toBeGreaterThanOrEqual(2);
});
