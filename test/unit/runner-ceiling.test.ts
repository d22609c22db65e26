import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ceilingLoads } from '../../lib/runner/ceiling-loads.ts';
import { ceilingOf, findCeilings } from '../../lib/runner/ceiling.ts';
import { ceilingSeconds } from '../../lib/runner/estimate.ts';
import { Interrupted } from '../../lib/runner/interrupt.ts';
import { LoadFailure } from '../../lib/runner/k6.ts';
import { makePlan, type Plan } from '../../lib/runner/plan.ts';
import type { Ceiling } from '../../lib/runner/result.ts';
import type { RunContext } from '../../lib/runner/round.ts';
import type { LoadProfile, Scenario, Variant } from '../../lib/scenario/model.ts';
import { phase } from '../fixtures/phase.ts';
import { descendants } from '../fixtures/processes.ts';

const load: LoadProfile = { command: 'wrk', protocol: 'http/1.1', connections: 100, threads: 4, keepAlive: true, durationSeconds: 10 };
const server: Variant['server'] = { name: 'nginx', config: ['base'], workers: 1 };
const scenario: Scenario = {
  name: 'some', title: '', knob: '', load, page: { docroot: 'nginx', path: '/', bodyBytes: 612 }, variants: [{ name: 'one', server }],
};
const cores = { serverCpus: [0], generatorCpus: [0] };
const planOf = (variants: readonly Variant[], quick = false): Plan => (
  { ...makePlan({ ...scenario, variants }, variants, cores, { quick, exact: false }), run: 'run' }
);

describe('the loads of a plan', () => {
  const names = (variants: readonly Variant[], tls: readonly string[] = []): string[][] => (
    ceilingLoads(planOf(variants), ({ variant }) => tls.includes(variant.name)).map((one) => one.variants)
  );

  test('are one for variants that differ in their servers, in how long they last and in how patient they are', () => {
    expect(names([
      { name: 'one', server }, { name: 'other', server: { ...server, config: ['base', 'workers'] } }, { name: 'longer', server, load: { ...load, durationSeconds: 20 } },
      { name: 'counted', server, load: { ...load, durationSeconds: undefined, requests: 5000, timeoutSeconds: 60 } as unknown as LoadProfile },
    ])).toEqual([['one', 'other', 'longer', 'counted']]);
  });

  test.each<[string, Partial<Variant>, readonly string[]]>([
    ['connections', { load: { ...load, connections: 10 } }, []],
    ['protocol', { load: { ...load, protocol: 'h2c' } }, []],
    ['streams', { load: { ...load, protocol: 'h2c', streams: 5 } }, []],
    ['keepAlive', { load: { ...load, keepAlive: false } }, []],
    ['method', { load: { ...load, method: 'POST', body: 'x' } }, []],
    ['headers', { load: { ...load, headers: { Accept: '*/*' } } }, []],
    ['host', { page: { ...scenario.page, host: 'example.org' } }, []],
    ['the page\'s size', { page: { ...scenario.page, bodyBytes: 21 } }, []],
    ['TLS', {}, ['other']],
    ['what is offered over TLS', { load: { ...load, tls: { curves: ['P-384'] } } }, ['one', 'other']],
  ])('differ by %s', (_, changes, tls) => {
    expect(names([{ name: 'one', server }, { name: 'other', server, ...changes }], tls)).toEqual([['one'], ['other']]);
  });

  test('leave out those with a rate, which ask for no more than it', () => {
    const open = { ...load, protocol: 'h2' as const, rate: 1000, requests: 10_000 };
    const { durationSeconds: _, ...counted } = open;
    expect(names([{ name: 'open', server, load: counted }, { name: 'one', server }])).toEqual([['one']]);
  });

  test('leave out those over a network of the run\'s own, whose link says what can be done too', () => {
    const direction = { delayMs: 100 };
    const network = { toServer: direction, toClient: direction, serverSettings: [], clientSettings: [] };
    expect(names([{ name: 'far', server, network }, { name: 'near', server }])).toEqual([['near']]);
  });

  test('last twice half a second, half of that with --quick, and with TLS as long as the handshakes before it', () => {
    expect(ceilingSeconds(planOf(scenario.variants))).toBeCloseTo(2 * (0.2 + 0.5) + 0.5, 9);
    expect(ceilingSeconds(planOf(scenario.variants, true))).toBeCloseTo(2 * (0.2 + 0.25) + 0.5, 9);
    const [overTls] = ceilingLoads(planOf(scenario.variants), () => true);
    expect(overTls?.load.warmupSeconds).toBeCloseTo(0.2 + 100 * 0.002, 9);
  });
});

describe('ceilingOf', () => {
  test('is what comes with all of the generator\'s cores', () => {
    expect(ceilingOf(phase({ requests: 1000, seconds: 1, rps: 1000, cpuSeconds: 0.5 }), 1)).toEqual({ rps: 2000, generatorShare: 0.5 });
    expect(ceilingOf(phase({ requests: 1000, seconds: 1, rps: 1000, cpuSeconds: 0.5 }), 2)).toEqual({ rps: 4000, generatorShare: 0.25 });
    expect(ceilingOf(phase({ requests: 1000, seconds: 1, rps: 1000, cpuSeconds: 1.1 }), 1)).toEqual({ rps: 1000, generatorShare: 1 });
  });

  test('is not told from requests that were not answered', () => {
    const responses = { '2xx': 900, '3xx': 0, '4xx': 0, '5xx': 0 };
    expect(() => ceilingOf(phase({ requests: 1000, responses, errorExample: 'reset' }), 1)).toThrow(new LoadFailure('the responder answered 900 of 1000 requests (reset)'));
    expect(() => ceilingOf(phase({ requests: 0 }), 1)).toThrow('answered 0 of 0 requests');
  });
});

describe('findCeilings', () => {
  let folder: string;
  let interrupt: AbortController;
  let checked: Ceiling[];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'bakeoff-test-'));
    interrupt = new AbortController();
    checked = [];
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const script = (name: string, text: string): string => {
    writeFileSync(join(folder, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    return join(folder, name);
  };
  /** Answers with `results`, whatever is asked. */
  const fakeK6 = (): string => script('k6', 'while [ "$1" != --console-output ]; do shift; done\ncat "$(dirname "$0")/results" >"$2"');
  const fakeResponder = (): string => script('responder', 'echo "$@" >>"$(dirname "$0")/asked"\necho "listening 127.0.0.1:9"\nexec sleep 60');
  const results = (text: string): void => writeFileSync(join(folder, 'results'), text);
  const find = (responder: string | undefined, variants: readonly Variant[] = scenario.variants): ReturnType<typeof findCeilings> => {
    const context: RunContext = {
      plan: planOf(variants), tools: { k6: fakeK6(), responder, delaylink: undefined, servers: {} }, folder, script: 'script.js', store: null,
      interrupt: { signal: interrupt.signal, guard: () => () => undefined },
    };
    return findCeilings(context, () => false, { checking: () => undefined, checked: (ceiling) => checked.push(ceiling) });
  };
  const noneLeft = (): Promise<void> => vi.waitFor(() => expect(descendants(process.pid).filter(({ command }) => command === 'sleep')).toEqual([]));

  test('asks the responder for the page and the protocol, takes the better attempt, and leaves nothing behind', async () => {
    const line = (rps: number): string => `bakeoff-phase ${JSON.stringify(phase({ requests: rps, seconds: 1, rps, cpuSeconds: 0.5 }))}\n`;
    results(line(1000) + line(700));
    const old = { name: 'old', server, load: { ...load, protocol: 'http/1.0' as const } };
    const found = await find(fakeResponder(), [{ name: 'one', server }, old]);
    expect(found).toEqual({
      ceilings: [{ variants: ['one'], rps: 2000, generatorShare: 0.5 }, { variants: ['old'], rps: 2000, generatorShare: 0.5 }], problems: [],
    });
    expect(checked).toEqual(found.ceilings);
    expect(readFileSync(join(folder, 'asked'), 'utf8')).toBe('--protocol http/1.1 --body-bytes 612 --threads 1\n'.repeat(2));
    expect(existsSync(join(folder, 'ceiling'))).toBe(false);
    await noneLeft();
  });

  test('says why there are none without a responder, unless none is needed', async () => {
    expect(await find(undefined)).toEqual({ ceilings: [], problems: [`there is no responder beside ${join(folder, 'k6')}`] });
    const { durationSeconds: _, ...open } = { ...load, rate: 10, requests: 10 };
    expect(await find(undefined, [{ name: 'open', server, load: open }])).toEqual({ ceilings: [], problems: [] });
  });

  test.each([
    ['a responder that does not start', 'echo "bind: no" >&2\nexit 3', 'one: the responder ended with code 3: bind: no'],
    ['one that is killed', 'kill -9 $$', 'one: the responder ended by SIGKILL'],
    ['one that says something else', 'echo hello\nexec sleep 60', 'one: the responder says "hello" instead of where it listens'],
  ])('goes on after %s', async (_, text, problem) => {
    expect(await find(script('responder', text))).toEqual({ ceilings: [], problems: [problem] });
    await noneLeft();
  });

  test('goes on after an error of k6, and keeps what it wrote', async () => {
    results('');
    expect(await find(fakeResponder())).toEqual({ ceilings: [], problems: ['one: k6 ended with code 0: it said nothing'] });
    expect(existsSync(join(folder, 'ceiling', '1', 'k6.log'))).toBe(true);
    await noneLeft();
  });

  test('ends with an interrupt, and ends the responder', async () => {
    const found = find(script('responder', 'touch "$(dirname "$0")/started"\nexec sleep 60'));
    await vi.waitFor(() => expect(existsSync(join(folder, 'started'))).toBe(true));
    interrupt.abort(new Interrupted());
    await expect(found).rejects.toBeInstanceOf(Interrupted);
    await noneLeft();
  });

  test('does not hide that its folder cannot be', async () => {
    writeFileSync(join(folder, 'ceiling'), '');
    await expect(find(fakeResponder())).rejects.toMatchObject({ code: 'ENOTDIR' });
  });
});
