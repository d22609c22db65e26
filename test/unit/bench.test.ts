import { describe, expect, test } from 'vitest';
import { readAb, readK6, readWrk, type Sample } from '../../bench/contenders.ts';
import { compareRounds, effectLines, held, tableLines, type Measured } from '../../bench/ratios.ts';

const wrkOutput = `Running 4s test @ http://127.0.0.1:18999/
  1 threads and 100 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.20ms  250.00us   9.00ms   88.00%
    Req/Sec    80.01k     5.00k   90.00k    70.00%
  318123 requests in 4.00s, 258.00MB read
Requests/sec:  79530.75
Transfer/sec:     64.50MB
`;

const abOutput = `Concurrency Level:      100
Time taken for tests:   3.846 seconds
Complete requests:      60000
Failed requests:        0
Total transferred:      50580000 bytes
Requests per second:    15602.20 [#/sec] (mean)
Time per request:       6.409 [ms] (mean)
`;

describe('what the generators print', () => {
  test('wrk', () => {
    expect(readWrk(wrkOutput)).toEqual({ requests: 318_123, rps: 79_530.75, errors: 0 });
    const failing = wrkOutput.replace('Requests/sec', '  Socket errors: connect 1, read 20, write 300, timeout 4000\n  Non-2xx or 3xx responses: 50000\nRequests/sec');
    expect(readWrk(failing).errors).toBe(54_321);
  });

  test('ab', () => {
    expect(readAb(abOutput)).toEqual({ requests: 60_000, rps: 15_602.2, errors: 0 });
    expect(readAb(abOutput.replace('Failed requests:        0', 'Failed requests:        7\nNon-2xx responses:      5')).errors).toBe(12);
  });

  test('k6', () => {
    expect(readK6('noise\nBENCH {"requests":10,"rps":5.5,"errors":0}\n')).toEqual({ requests: 10, rps: 5.5, errors: 0 });
  });

  test.each([readWrk, readAb, readK6])('something else is refused', (read) => {
    expect(() => read('command not found')).toThrow('is it another version?');
  });
});

function sample(rps: number, cpuMicrosPerRequest: number): Measured {
  return { requests: 1000, rps, errors: 0, cpuMicrosPerRequest, serverShare: 0.97 };
}

describe('ratios', () => {
  const measured = [sample(110, 4), sample(90, 9)];
  const peer = [sample(100, 8), sample(100, 8)];

  test('are the measured figure over the peer\'s, round by round', () => {
    const { cpu, rps } = compareRounds(measured, peer);
    expect([cpu.min, cpu.max, rps.min, rps.max]).toEqual([0.5, 1.125, 0.9, 1.1]);
    expect(cpu.ratio).toBeCloseTo(Math.sqrt(0.5 * 1.125), 12);
  });

  test('hold a limit on both sides of it', () => {
    const { cpu, rps } = compareRounds(measured, peer); // 0.750 and 0.995
    expect(held({ cpu, rps }, { cpu: 0.76 })).toBe(true);
    expect(held({ cpu, rps }, { cpu: 0.74 })).toBe(false);
    expect(held({ cpu, rps }, { cpu: 1, rps: 0.98 })).toBe(true);
    expect(held({ cpu, rps }, { cpu: 1, rps: 1 })).toBe(false);
  });

  test('stand in a table with the limit and whether it was held', () => {
    const lines = tableLines([
      { load: 'keep-alive', arrangement: 'a core each', generator: 'loadgen', samples: [sample(98_000, 8), sample(98_000, 8)],
        against: { peer: 'wrk', ...compareRounds([sample(98_000, 8), sample(98_000, 8)], [sample(100_000, 10), sample(100_000, 10)]), limits: { cpu: 0.7 } } },
      { load: 'keep-alive', arrangement: 'a core each', generator: 'wrk', samples: [sample(100_000, 10)], against: null },
    ]);
    expect(lines).toEqual([
      'keep-alive · a core each                            requests/s   CPU µs/request   server',
      '  loadgen                                               98,000             8.00     97 %',
      '    CPU per request × 0.800 [0.800, 0.800] (rounds 0.800 to 0.800) of wrk; requests/s × 0.980 [0.980, 0.980] (rounds 0.980 to 0.980)',
      '    limit: CPU × 0.7 at most: NOT HELD',
      '  wrk                                                  100,000            10.00     97 %',
    ]);
  });

  test('of an effect are the server with it over the server without', () => {
    const rates = (...values: number[]): Sample[] => values.map((rps) => sample(rps, 1));
    expect(effectLines([{ generator: 'wrk', without: rates(50_000, 50_000), with: rates(65_000, 65_000) }])).toEqual([
      '  wrk                  50,000 → 65,000 requests/s: × 1.300 [1.300, 1.300] (rounds 1.300 to 1.300)',
    ]);
  });
});
