// The delay of an emulated network on an idle machine.
import { availableParallelism, loadavg } from 'node:os';
import { expect, onTestFinished, test } from 'vitest';
import { delaylinkFor } from '../../lib/features/network/enclosure.ts';
import { openNetwork } from '../../lib/features/network/network.ts';
import { ensureTools } from '../../lib/setup/tools.ts';
import { datagrams, whyNoNetworks } from '../fixtures/networks.ts';

test('an idle link takes 100 ms to the server, and less than 102 ms for the round trip', async (context) => {
  const impossible = await whyNoNetworks();
  if (impossible !== undefined) context.skip(impossible);
  const { k6 } = await ensureTools(['k6']);
  const binary = await delaylinkFor(k6, 'this test');
  const link = await openNetwork({
    seed: 1,
    binary,
    spec: {
      toServer: { delayMs: 100 },
      toClient: { delayMs: 0 },
      serverSettings: [],
      clientSettings: [],
    },
    cores: { serverCpus: [availableParallelism() - 1], generatorCpus: [0] },
    signal: new AbortController().signal,
  });
  onTestFinished(link.stop);
  // Other work on the machine may disturb some series, but not all.
  let p99Ms = Infinity;
  for (let series = 0; p99Ms >= 102 && series < 10; series++) {
    const answers = await datagrams(link, 100, 10);
    expect(answers).toHaveLength(100);
    expect(Math.min(...answers.map(({ toServerMs }) => toServerMs))).toBeGreaterThanOrEqual(100);
    const roundTripsMs = answers
      .map(({ toServerMs, toClientMs }) => toServerMs + toClientMs)
      .sort((a, b) => a - b);
    expect(roundTripsMs[0]).toBeLessThan(102);
    p99Ms = roundTripsMs[98] as number;
  }
  const { toServer, toClient, quiet, deviceDrops } = await link.report();
  expect({ quiet, deviceDrops }).toEqual({ quiet: true, deviceDrops: 0 });
  expect([toServer.delivered, toServer.kinds.other, toClient.packets, toClient.delivered]).toEqual(
    Array(4).fill(toServer.packets),
  );
  if (p99Ms >= 102 && (loadavg()[0] as number) > availableParallelism()) {
    const reason = `this machine is busy (load average ${loadavg()[0]?.toFixed(1)}): p99 ${p99Ms.toFixed(1)} ms`;
    console.warn(`SKIPPED, the round trip's p99 on a link at rest: ${reason}`);
    context.skip(reason);
  }
  expect(p99Ms).toBeLessThan(102);
});
