// Manifests for a cluster without one: what they have a node do, done here.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, readdirSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { phaseLinePrefix, type LoadPlan, type PhaseOutcome } from '../../lib/k6/load-plan.ts';
import { instanceArguments, mergeInstances } from '../../lib/runner/instances.ts';
import type { LoadResult } from '../../lib/result/result.ts';
import { freePort } from '../../lib/servers/ports.ts';
import { waitUntilReady } from '../../lib/servers/index.ts';
import { ensureTools } from '../../lib/setup/tools.ts';
import { writeLines } from '../../lib/store/client.ts';
import type { Store } from '../../lib/store/index.ts';
import { line, toNanoseconds } from '../../lib/store/line-protocol.ts';
import { useLocalStore } from '../fixtures/local-store.ts';
import { printed, type Deployment, type Printed, type TestRun } from '../fixtures/manifests.ts';
import { useServers } from '../fixtures/servers.ts';

const servers = useServers();
const local = useLocalStore();
let k6: string;
beforeAll(async () => {
  // Whom the image's user stands for may read it there.
  k6 = path.join(servers.folder, 'k6');
  await copyFile((await ensureTools(['k6'])).k6, k6);
}, 300_000);

const noRoot = process.getuid?.() === 0 ? { uid: 1000, gid: 1000 } : {};

/** What runs until it ends or the test does, and all that it said. */
function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv): { child: ChildProcess; said(): string; code: Promise<number | null> } {
  const child = spawn(command, args, { env: { PATH: process.env['PATH'], HOME: '/tmp', ...env }, stdio: ['ignore', 'pipe', 'pipe'], detached: true, ...noRoot });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (part: string) => { text += part; });
  const code = once(child, 'close').then(([number]: unknown[]) => number as number | null);
  onTestFinished(async () => {
    try {
      // With all that it started.
      process.kill(-(child.pid as number), 'SIGKILL');
    } catch {
      // It has ended.
    }
    await code;
  });
  return { child, said: () => text, code };
}

/** Runs the pod's containers as the image's user, with its volumes as folders; returns the port, and what the server says. */
async function startPod(deployment: Deployment, { configMap }: Printed): Promise<{ port: number; said(): string }> {
  const root = await mkdtemp(path.join(servers.folder, 'pod-'));
  const { containers: [server], initContainers, volumes } = deployment.spec.template.spec;
  const port = await freePort();
  const here = (text: string): string => text.replaceAll(/(?<!\w)\/(?:bakeoff|tmp)\b/g, `${root}$&`).replaceAll(String(server.startupProbe.tcpSocket.port), String(port));
  for (const { mountPath } of [...initContainers, server].flatMap(({ volumeMounts }) => volumeMounts)) await mkdir(path.join(root, mountPath), { recursive: true });
  for (const { name, configMap: source } of volumes) {
    const mounted = server.volumeMounts.find((mount) => mount.name === name)?.mountPath as string;
    for (const { key, path: file } of source?.items ?? []) {
      const place = path.join(root, mounted, file);
      await mkdir(path.dirname(place), { recursive: true });
      await writeFile(place, here(configMap(source?.name as string)[key] as string));
    }
  }
  giveAll(root);
  for (const { command: [program = '', ...args] } of initContainers) {
    const { code, said } = run(program, args.map(here), {});
    expect(await code, said()).toBe(0);
  }
  const { command: [program = '', ...args] } = server;
  return { port, said: run(program, args.map(here), {}).said };
}

function giveAll(folder: string): void {
  for (const place of [folder, ...readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((inner) => path.join(folder, inner))]) {
    if (noRoot.uid === undefined) continue;
    chownSync(place, noRoot.uid, noRoot.gid);
  }
  chmodSync(folder, 0o755);
}

interface Generator { port: number; said(): string; code: Promise<number | null> }

/** A folder with what the script's ConfigMap mounts. */
async function scriptFolder({ spec: { script } }: TestRun, { configMap }: Printed): Promise<string> {
  const folder = await mkdtemp(path.join(servers.folder, 'test-'));
  for (const [file, text] of Object.entries(configMap(script.configMap.name))) await writeFile(path.join(folder, file), text);
  giveAll(folder);
  return folder;
}

function environmentOf({ spec: { runner } }: TestRun, { configMap }: Printed, { influx: { credentials } }: Store): Record<string, string> {
  const secret: Record<string, string | undefined> = { username: credentials?.user, password: credentials?.password };
  return Object.fromEntries(runner.env.map(({ name, value, valueFrom }) => {
    const { configMapKeyRef: file, secretKeyRef: hidden } = valueFrom ?? {};
    return [name, value ?? (file === undefined ? secret[hidden?.key as string] : configMap(file.name)[file.key]) as string];
  }));
}

/** What the operator tries first: whether the script can be read, with the variables as arguments. */
async function initialize({ spec: { script } }: TestRun, folder: string, env: Record<string, string>): Promise<string> {
  const archive = path.join(folder, 'script.archived.tar');
  const archived = run(k6, ['archive', path.join(folder, script.configMap.file), '-O', archive, ...Object.entries(env).flatMap(([name, value]) => ['-e', `${name}=${value}`])], env);
  expect(await archived.code, archived.said()).toBe(0);
  const inspected = run(k6, ['inspect', '--execution-requirements', archive], env);
  expect(await inspected.code, inspected.said()).toBe(0);
  return inspected.said();
}

/** What the operator starts, but for the address. */
async function startGenerators(testRun: TestRun, folder: string, env: Record<string, string>): Promise<Generator[]> {
  const { metadata: { name }, spec: { parallelism, script, arguments: given } } = testRun;
  return Promise.all(Array.from({ length: parallelism }, async (_, index) => {
    const port = await freePort();
    const segments = instanceArguments(index + 1, parallelism).slice(0, -2);
    const { said, code } = run(k6, [
      'run', '--quiet', ...segments, ...given.split(' '), path.join(folder, script.configMap.file), `--address=127.0.0.1:${port}`, '--paused',
      '--tag', `instance_id=${index + 1}`, '--tag', `testrun_name=${name}`,
    ], env);
    await vi.waitFor(async () => expect((await fetch(`http://127.0.0.1:${port}/v1/status`)).status).toBe(200), { timeout: 20_000 });
    return { port, said, code };
  }));
}

async function release({ port }: Generator): Promise<void> {
  const body = { data: { attributes: { paused: false }, id: 'default', type: 'status' } };
  expect((await fetch(`http://127.0.0.1:${port}/v1/status`, { method: 'PATCH', body: JSON.stringify(body) })).status).toBe(200);
}

/** What the script printed, as k6 logs it. */
function outcomesIn(said: string): PhaseOutcome[] {
  return [...said.matchAll(/msg=("(?:[^"\\]|\\.)*")/g)].map(([, quoted]) => JSON.parse(quoted as string) as string)
    .filter((line) => line.startsWith(phaseLinePrefix)).map((line) => JSON.parse(line.slice(phaseLinePrefix.length)) as PhaseOutcome);
}

const readyIn = async (store: Store): Promise<number> => (await store.query('SELECT count("ready") FROM bench_ready WHERE "ready" = 1 GROUP BY "instance"')).length;

/** The load's plan with another server, that is here, and what else is different. */
function planHere(env: Record<string, string>, port: number, changes: (plan: LoadPlan) => Partial<LoadPlan> = () => ({})): LoadPlan {
  const text = (env['BAKEOFF_LOAD'] as string).replaceAll(/http:\/\/nginx[\w-]+:8080/g, `http://127.0.0.1:${port}`);
  const plan = JSON.parse(text) as LoadPlan;
  return { ...plan, ...changes(plan) };
}

describe('the servers of a cluster', () => {
  test.each([
    ['nginx-open-file-cache', 'open-file-cache', 'http/1.1'], ['h2o-vs-nginx', undefined, 'http/1.1'], ['http1-vs-h2-small-file', undefined, undefined], ['nghttpd-img', undefined, 'h2'],
  ] as const)('%s: serve their page, without root', async (scenario, variants, protocol) => {
    const out = await printed(scenario, '--influx', 'http://influxdb:8086', '--generators', '1', ...(variants === undefined ? [] : ['--variants', variants]));
    expect(out.deployments.length).toBeGreaterThan(0);
    for (const deployment of out.deployments) {
      const { name } = deployment.metadata;
      const { port, said } = await startPod(deployment, out);
      const [testRun] = out.testRuns.filter(({ metadata }) => metadata.name.startsWith(`${name}-`)) as [TestRun];
      const plan = JSON.parse(Object.values(out.configMap(testRun.metadata.name))[0] as string) as LoadPlan;
      const [side] = plan.phases[0]?.sides ?? [];
      const url = new URL(side?.url as string);
      expect(`${url.hostname}:${url.port}`).toBe(`${name}:8080`);
      const page = { path: url.pathname };
      const answer = await waitUntilReady({ origin: `${url.protocol}//127.0.0.1:${port}`, page, protocol: side?.protocol ?? protocol ?? 'http/1.1', anyLength: true }, AbortSignal.timeout(5000)).catch((error: Error) => `${error.message}: ${said()}`);
      expect(answer).toMatchObject({ status: 200 });
    }
  });
});

describe('a load of several generators in a cluster', () => {
  test('begins in all of them when the last one is ready, and is stored as one', async () => {
    const store = await local.open(local.newFolder());
    const out = await printed('nginx-open-file-cache', '--variants', 'workers', '--duration', '2s', '--influx', store.influx.url, '--influx-secret', 'influxdb');
    const [testRun] = out.testRuns as [TestRun];
    const { port } = await startPod(out.deployments[0] as Deployment, out);
    const folder = await scriptFolder(testRun, out);
    const env = environmentOf(testRun, out, store);
    expect(JSON.parse(await initialize(testRun, folder, env))).toMatchObject({ maxVUs: 2 });
    const plan = planHere(env, port);
    const [first, second] = await startGenerators(testRun, folder, { ...env, BAKEOFF_LOAD: JSON.stringify(plan) }) as [Generator, Generator];
    await release(first);
    await vi.waitFor(async () => expect(await readyIn(store)).toBe(1), { timeout: 20_000 });
    await release(second);
    expect([await first.code, await second.code], first.said() + second.said()).toEqual([0, 0]);
    const ends = [first, second].map(({ said }) => ({ phases: outcomesIn(said()) }));
    // It throws where they began more than 100 ms apart.
    const together = mergeInstances(ends, plan)[0]?.results[0] as LoadResult;
    expect(together.requests).toBeGreaterThan(1000);
    expect(together.responses['2xx']).toBe(together.requests);
    const [stored] = await store.query(`SELECT sum("value") FROM loadgen_requests WHERE run = '${plan.tags['run']}' AND variant = 'workers'`);
    expect(stored?.values[0]?.[1]).toBe(together.requests);
    // The same ones again would be two runs of one name.
    const [third] = await startGenerators({ ...testRun, spec: { ...testRun.spec, parallelism: 1 } }, folder, { ...env, BAKEOFF_LOAD: JSON.stringify({ ...plan, instances: 1 }) }) as [Generator];
    await release(third);
    expect(await third.code, third.said()).not.toBe(0);
    expect(third.said()).toContain(`bench_ready has generator 1 of run ${plan.tags['run']}, variant workers already: print the manifests anew for another run`);
  });

  test('names who is missing, and the database that does not answer', async () => {
    const store = await local.open(local.newFolder());
    const out = await printed('nginx-open-file-cache', '--variants', 'workers', '--generators', '2', '--influx', store.influx.url, '--influx-secret', 'influxdb');
    const [testRun] = out.testRuns as [TestRun];
    const env = environmentOf(testRun, out, store);
    const folder = await scriptFolder(testRun, out);
    const meetAt = { url: store.influx.url, database: 'bakeoff', withinSeconds: 1 };
    const saysAlone = async (changes: Partial<LoadPlan>, password = env['K6_INFLUXDB_PASSWORD'] as string): Promise<string> => {
      const plan = planHere(env, 9, () => changes);
      const [generator] = await startGenerators(testRun, folder, { ...env, K6_INFLUXDB_PASSWORD: password, BAKEOFF_LOAD: JSON.stringify(plan) }) as [Generator];
      await release(generator);
      expect(await generator.code, generator.said()).not.toBe(0);
      return generator.said();
    };
    expect(await saysAlone({ meetAt })).toContain('generator 2 of 2 was not ready within 1 s: see why, and print the manifests anew');
    expect(await saysAlone({ meetAt: { ...meetAt, url: 'http://127.0.0.1:9' } })).toContain('InfluxDB at http://127.0.0.1:9, where generators meet, does not answer: ');
    // Who waited for this one has given up by now.
    const load = { run: 'late', variant: 'workers', round: '1' };
    await writeLines(store.influx, [line('bench_ready', { ...load, instance: '2' }, { ready: 1 }, toNanoseconds(Date.now() - 60_000))]);
    expect(await saysAlone({ tags: load, meetAt: { ...meetAt, withinSeconds: 50 } })).toContain('generator 1 of 2 was not ready within 50 s');
    expect(await saysAlone({ meetAt }, 'wrong')).toContain(`InfluxDB at ${store.influx.url}, where generators meet, says 401: `);
  });
});
