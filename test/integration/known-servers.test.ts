// The server of known figures behaves as calculated: the engine loads each alone and continuously. Go tests cover the exact schedule;
// these tests cover the responses of a real server. Queues are deeper than a busy machine's delays, and rates are low.
import { readFileSync, readdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, it, onTestFinished, vi } from 'vitest';
import { buildServer, commandOf } from '../../lib/features/calibrate/servers.ts';
import { total } from '../../lib/analysis/statistics.ts';
import type { LoadResult } from '../../lib/result/load-result.ts';
import { run } from '../../lib/process.ts';
import { startServer } from '../../lib/servers/index.ts';
import { processTree } from '../../lib/servers/usage.ts';
import { thisMachine } from '../../lib/setup/machine.ts';
import { ensureTools } from '../../lib/setup/tools.ts';
import { sharedFolder } from '../fixtures/new-folder.ts';
import { welcomePage } from '../fixtures/servers.ts';

const folder = sharedFolder();
const script = join(folder, 'load.js');
let [k6, program] = ['', ''];
beforeAll(async () => {
  ({ k6 } = await ensureTools(['k6']));
  program = await buildServer(thisMachine(), folder);
  await writeFile(
    script,
    `import loadgen from 'k6/x/loadgen';
    export const options = { vus: 1, iterations: 1 };
    export default () => console.log(JSON.stringify(loadgen.run(JSON.parse(__ENV.LOAD))));`,
  );
});

type Seen = LoadResult & { cpuMicros: number };

/** Starts the server and returns a function that loads it. CPU time is in µs per request, of all its processes. */
async function started(options: string): Promise<(load: object) => Promise<Seen>> {
  const server = await startServer(commandOf(program, options), {
    binaries: {},
    folder: join(folder, 'server'),
    cpus: [0, 1],
    workers: 1,
    page: welcomePage,
    signal: AbortSignal.timeout(60_000),
  });
  onTestFinished(server.stop);
  const cpuMicros = () => total(processTree('/proc', String(server.pid)), cpuMicrosOf);
  return async (load) => {
    const before = cpuMicros();
    const { code, stdout, stderr } = await run({
      command: k6,
      args: ['run', '--quiet', '--no-color', '--address', '', '--log-format', 'raw', script],
      env: { ...process.env, LOAD: JSON.stringify({ url: `${server.origin}/`, ...load }) },
    });
    const text = /^\{.*\}$/m.exec(stdout + stderr)?.[0];
    if (code !== 0 || text === undefined) throw new Error(stdout + stderr);
    const seen = JSON.parse(text) as LoadResult;
    expect(seen.errors.total).toBe(0);
    const requests = seen.requests + seen.warmupRequests + seen.inFlight;
    return { ...seen, cpuMicros: (cpuMicros() - before) / requests };
  };
}

/** CPU time of a process and its reaped children. */
function cpuMicrosOf(pid: string): number {
  const tasks = `/proc/${pid}/task`;
  const taskMicros = readdirSync(tasks).map(
    (task) => Number(readFileSync(`${tasks}/${task}/schedstat`, 'utf8').split(' ')[0]) / 1000,
  );
  const [, fields = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ');
  // cutime and cstime of /proc/PID/stat, in hundredths of a second.
  const [user, system] = fields.split(' ').slice(13, 15).map(Number) as [number, number];
  return taskMicros.reduce((sum, micros) => sum + micros, 1e4 * (user + system));
}

/** Tolerance in percent. */
function expectAbout(seen: number, truth: number, percent = 3): void {
  expect(seen).toBeGreaterThan(truth * (1 - percent / 100));
  expect(seen).toBeLessThan(truth * (1 + percent / 100));
}

/** Loads until the figures are right: a load in which a worker waited for a core is late. A server that is off never has them. */
async function loadedUntil(
  load: () => Promise<Seen>,
  areRight: (seen: Seen) => void,
): Promise<Seen> {
  return vi.waitFor(
    async () => {
      const seen = await load();
      areRight(seen);
      return seen;
    },
    { timeout: 60_000, interval: 1 },
  );
}

it.each([
  // A fourteenth of a core, which a busy machine has too.
  ['-service 4ms -cpu 300us', { connections: 150 }, 250, 300],
  ['-workers 4 -service 16ms', { connections: 150, rate: 325 }, 250, undefined],
  ['-workers 4 -service 8ms -uneven', { connections: 300 }, 500, undefined],
  ['-service 2ms -stall 150ms -stall-each 500ms', { connections: 200 }, 350, undefined],
])('%s reaches the capacity of its workers', async (options, load, rps, cpuMicros) => {
  const server = await started(options);
  const seen = await loadedUntil(
    () => server({ ...load, warmup: '300ms', duration: '1s' }),
    (each) => expectAbout(each.rps, rps),
  );
  // With the accepts of 150 connections.
  if (cpuMicros !== undefined) expectAbout(seen.cpuMicros, cpuMicros, 10);
});

it.each([
  ['-workers 8 -service 50us -then 50ms', { connections: 20, requests: 200 }, 50.05],
  ['-service 1ms', { rate: 300, connections: 20, requests: 200 }, 1],
  ['-workers 4 -service 4ms', { rate: 300, connections: 20, requests: 200 }, 4],
])('%s never answers early, and hardly late', async (options, load, leastMs) => {
  const server = await started(options);
  const least: number[] = [];
  await loadedUntil(
    () => server(load),
    ({ latencyMs: { min } }) => {
      least.push(min);
      expect(min).toBeLessThan(leastMs + 1);
    },
  );
  expect(Math.min(...least)).toBeGreaterThanOrEqual(leastMs);
});

it('a stall is in the latency of waiting requests', async () => {
  const load = await started('-service 500us -stall 400ms -stall-after 200');
  const { latencyMs } = await load({ connections: 50, duration: '1s' });
  expect(latencyMs.p99).toBeGreaterThan(400);
  expect(latencyMs.p50).toBeLessThan(200);
});

it('a compiling server takes twice the CPU time at first', async () => {
  const load = await started('-cpu 200us -slow-for 10m');
  expectAbout((await load({ connections: 10, requests: 1000 })).cpuMicros, 400, 5);
  const warm = await started('-cpu 200us -slow-for 1ns');
  expectAbout((await warm({ connections: 10, requests: 1000 })).cpuMicros, 200, 5);
});

it('the work after responses is in the CPU time', async () => {
  const load = await started('-cpu 100us -after 200us -backlog 10ms');
  expectAbout((await load({ connections: 10, requests: 2000 })).cpuMicros, 300, 5);
});

it('processes share the connections and the port', async () => {
  const load = await started('-cpu 300us -processes 4');
  const { cpuMicros, perConnectionRps } = await load({ connections: 100, requests: 4000 });
  expectAbout(cpuMicros, 300, 5);
  expect(perConnectionRps.min).toBeGreaterThan(0);
});

it('the CPU time of a fork per request is in the ended processes', async () => {
  const load = await started('-fork 1500us');
  expectAbout((await load({ connections: 10, requests: 400 })).cpuMicros, 1500, 5);
});
