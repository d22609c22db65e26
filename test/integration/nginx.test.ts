// The real nginx: started with what is shipped, refused where it has to be, and gone afterwards.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { connect, createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { loadScenarios } from '../../lib/scenario/catalogue.ts';
import { nginx } from '../../lib/scenario/index.ts';
import type { ServerSpec } from '../../lib/scenario/model.ts';
import { startServer, workersFor, type RunningServer, type StartOptions } from '../../lib/servers/index.ts';
import { freePort } from '../../lib/servers/ports.ts';
import { ensureTools } from '../../lib/setup/tools.ts';
import { isRunning } from '../fixtures/processes.ts';

vi.mock(import('../../lib/servers/ports.ts'), async (original) => {
  const ports = await original();
  return { ...ports, freePort: vi.fn(ports.freePort) };
});

const waitMs = { timeout: 10_000, interval: 20 };
const one = nginx(['base'], { workers: 1, articleWorkers: 1 });

let folder = '';
let binary = '';
beforeAll(async () => {
  ({ nginx: binary } = await ensureTools(['nginx']));
  // Servers copy their pages here, so that what they leave behind can be seen.
  folder = await mkdtemp(path.join(tmpdir(), 'nginx-test-'));
  await chmod(folder, 0o755);
  vi.stubEnv('TMPDIR', folder);
}, 120_000);
afterAll(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true });
});

const scratchFolders = async (): Promise<string[]> => (await readdir(folder)).filter((name) => name.startsWith('bakeoff-server-'));

async function start(spec: ServerSpec, options: Partial<StartOptions> = {}): Promise<RunningServer> {
  const server = await startServer(spec, {
    binary, folder: path.join(folder, 'round'), cpus: [0], workers: 1, page: { path: '/', bodyBytes: 612 }, ...options,
  });
  onTestFinished(server.stop);
  return server;
}

/** The master's children. */
async function workersOf(master: number): Promise<number[]> {
  const children = await readFile(`/proc/${master}/task/${master}/children`, 'utf8');
  return children.split(' ').filter((pid) => pid.trim() !== '').map(Number);
}

async function ownConfig(text: string): Promise<string> {
  const file = path.join(folder, 'own.conf');
  await writeFile(file, text);
  return file;
}

const problemOf = async (starting: Promise<RunningServer>): Promise<Error> =>
  starting.then((server) => Promise.reject(new Error(`it started at ${server.origin}`)), (error: Error) => error);

describe('what is shipped', async () => {
  const variants = (await loadScenarios()).flatMap((scenario) => scenario.variants.map((variant) => ({ scenario, variant })));

  it.each(variants)('$scenario.name / $variant.name serves its page and leaves nothing', async ({ scenario, variant }) => {
    const workers = workersFor(variant.server, 2, false);
    const server = await start(variant.server, { page: scenario.page, workers });
    const response = await fetch(server.origin + scenario.page.path);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/html');
    expect(await response.text()).toBe(await readFile(new URL('../../server-configs/www/index.html', import.meta.url), 'utf8'));
    expect(server.version).toMatch(/^\d+\.\d+\.\d+/);
    expect(server).toMatchObject({ name: 'nginx', workers: 2 });

    const pids = [server.pid, ...(await workersOf(server.pid))];
    expect(pids).toHaveLength(3);
    for (const pid of pids) expect(await readFile(`/proc/${pid}/status`, 'utf8')).toMatch(/^Cpus_allowed_list:\t0$/m);
    await server.stop();
    await server.stop();
    expect(pids.filter(isRunning)).toEqual([]);
    expect(await scratchFolders()).toEqual([]);
    expect(await readFile(server.logFile, 'utf8')).not.toMatch(/\[(warn|error|crit|alert|emerg)\]/);
    expect(await readFile(server.configFile, 'utf8')).toContain('worker_processes 2;');
  });
});

it('closes a connection after 100 requests, or never with keepalive-unlimited', async () => {
  const answersOnOneConnection = async (config: string[]): Promise<number> => {
    const server = await start(nginx(config, { workers: 1, articleWorkers: 1 }));
    const socket = connect(Number(new URL(server.origin).port), '127.0.0.1');
    socket.write('HEAD / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(150) + 'HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    let text = '';
    for await (const chunk of socket) text += String(chunk);
    await server.stop();
    return text.split('HTTP/1.1 200 OK').length - 1;
  };
  expect(await answersOnOneConnection(['base'])).toBe(100);
  expect(await answersOnOneConnection(['base', 'keepalive-unlimited'])).toBe(151);
});

it('serves a page from results that only root may enter, with workers that are not root', async () => {
  const closed = await mkdtemp(path.join(folder, 'closed-'));
  const server = await start(one, { folder: path.join(closed, 'round') });
  expect((await fetch(server.origin)).status).toBe(200);
  const [worker] = await workersOf(server.pid);
  const uid = /^Uid:\t(\d+)/m.exec(await readFile(`/proc/${worker}/status`, 'utf8'))?.[1];
  if (process.getuid?.() === 0) expect(uid).not.toBe('0');
});

it('logs each request when asked to, the check for readiness under its own name', async () => {
  const server = await start(one, { accessLog: true });
  for (let i = 0; i < 5; i++) await (await fetch(server.origin)).text();
  await server.stop();
  const lines = (await readFile(server.accessLogFile ?? '', 'utf8')).trim().split('\n');
  expect(lines.filter((line) => !line.includes('bakeoff-ready'))).toHaveLength(5);
  expect(lines).toHaveLength(6);
});

describe('usage', () => {
  it('rises with the work of the workers, and keeps it when they are gone', async () => {
    const server = await start(one, { workers: 2 });
    const workers = await workersOf(server.pid);
    const cpuOf = async (pid: number): Promise<number> => Number((await readFile(`/proc/${pid}/schedstat`, 'utf8')).split(' ')[0]) / 1e9;
    const before = { usage: server.usage(), workers: await Promise.all(workers.map(cpuOf)) };
    for (let i = 0; i < 20; i++) await Promise.all(Array.from({ length: 50 }, async () => (await fetch(server.origin)).text()));
    const after = { workers: await Promise.all(workers.map(cpuOf)), usage: server.usage() };
    const sum = (list: number[]): number => list.reduce((total, one) => total + one, 0);
    const rounding = 1e-6;
    const byWorkers = sum(after.workers) - sum(before.workers);
    expect(byWorkers).toBeGreaterThan(0);
    expect(after.usage.cpuSeconds - before.usage.cpuSeconds).toBeGreaterThan(byWorkers - rounding);
    expect(after.usage.rssBytes).toBeGreaterThan(3_000_000);
    await server.stop();
    expect(server.usage().cpuSeconds).toBeGreaterThan(after.usage.cpuSeconds - rounding);
    expect(server.usage().rssBytes).toBe(0);
  });
});

describe('what is refused', () => {
  it("a config that nginx does not accept: nginx's words, the file and the line", async () => {
    const error = await problemOf(start(nginx(['base', await ownConfig('http {\n  sendfile maybe;\n}')], { workers: 1, articleWorkers: 1 })));
    const [first = '', ...rest] = error.message.split('\n');
    expect(first).toBe(`nginx does not accept its config ${folder}/round/nginx.conf:`);
    expect(rest[0]).toContain('invalid value "maybe" in "sendfile" directive');
    expect(rest[1]).toMatch(/^line \d+: sendfile maybe; {2}# own\.conf$/);
    expect(rest).toHaveLength(2);
    expect(await scratchFolders()).toEqual([]);
  });

  it('a port in use, when the caller gave it', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    onTestFinished(() => void other.close());
    const { port } = other.address() as AddressInfo;
    const error = await problemOf(start(one, { port }));
    expect(error.message).toBe(`port ${port} of 127.0.0.1 is in use: end what listens there, or take another port`);
    expect(await scratchFolders()).toEqual([]);
  });

  it('a page of another length, or none, at once', async () => {
    await expect(start(one, { page: { path: '/', bodyBytes: 611 } })).rejects.toThrow(/answers with 612 bytes instead of 611/);
    await expect(start(one, { page: { path: '/none', bodyBytes: 612 } })).rejects.toThrow(/none answers with status 404 instead of 200; nginx's log: .*No such file/);
    expect(await scratchFolders()).toEqual([]);
  });

  it('a binary that is missing or is not nginx', async () => {
    await expect(start(one, { binary: '/nowhere/nginx' })).rejects.toThrow(/^\/nowhere\/nginx is not an nginx that runs here \(.*No such file.*\): set NGINX_BIN/);
    await expect(start(one, { binary: '/bin/true' })).rejects.toThrow(/^\/bin\/true is not an nginx that runs here/);
  });

  it('cores that are not there', async () => {
    await expect(start(one, { cpus: [4095] })).rejects.toThrow(/^nginx \(pid \d+\) ended with code 1; its log ends: taskset: /);
    expect(await scratchFolders()).toEqual([]);
  });
});

it('takes another port when a server with the same page was faster on the first one', async () => {
  const other = createHttpServer((_, response) => response.end('x'.repeat(612))).listen(0, '127.0.0.1');
  await once(other, 'listening');
  onTestFinished(() => void other.close());
  const { port } = other.address() as AddressInfo;
  vi.mocked(freePort).mockClear().mockResolvedValueOnce(port);
  const server = await start(one);
  expect(freePort).toHaveBeenCalledTimes(2);
  expect(server.origin).not.toBe(`http://127.0.0.1:${port}`);
  expect(await (await fetch(server.origin)).text()).toContain('bakeoff');
  await server.stop();
  expect(await scratchFolders()).toEqual([]);
});

it.each([0, 20, 40, 60])('an abort after %i ms of the start leaves nothing running', async (afterMs) => {
  const controller = new AbortController();
  const round = await mkdtemp(path.join(folder, 'aborted-'));
  const timer = setTimeout(() => controller.abort(new Error('enough')), afterMs);
  onTestFinished(() => clearTimeout(timer));
  const outcome = await start(one, { folder: round, signal: controller.signal }).then((server) => server.stop().then(() => 'started'), (error: Error) => error.message);
  expect(['enough', 'started']).toContain(outcome);
  expect(await scratchFolders()).toEqual([]);
  expect(await processesNaming(round)).toEqual([]);
});

describe('an end that nobody asked for', () => {
  it('of the master settles `died` with one line, and takes the workers along', async () => {
    const server = await start(one, { workers: 2 });
    const pids = [server.pid, ...(await workersOf(server.pid))];
    process.kill(server.pid, 'SIGKILL');
    expect(await server.died).toMatch(new RegExp(`^nginx \\(pid ${server.pid}\\) ended by SIGKILL; its log ends: .*start worker process.*$`));
    expect(pids.filter(isRunning)).toEqual([]);
    expect(await scratchFolders()).toEqual([]);
    await server.stop();
  });

  it('of the process that started it ends master and workers', async () => {
    const round = await mkdtemp(path.join(folder, 'orphaned-'));
    const script = path.join(folder, 'starter.mts');
    const servers = pathToFileURL(fileURLToPath(new URL('../../lib/servers/index.ts', import.meta.url))).href;
    await writeFile(script, `
      import { startServer } from ${JSON.stringify(servers)};
      const server = await startServer(${JSON.stringify(one)}, {
        binary: ${JSON.stringify(binary)}, folder: ${JSON.stringify(round)}, cpus: [0], workers: 2, page: { path: '/', bodyBytes: 612 },
      });
      console.log(server.pid);
      setInterval(() => undefined, 1000);
    `);
    const starter = spawn(process.execPath, ['--import', 'tsx', script], { cwd: fileURLToPath(new URL('../..', import.meta.url)), stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => void starter.kill('SIGKILL'));
    const [line] = (await once(starter.stdout, 'data')) as [Buffer];
    const master = Number(String(line));
    const pids = [master, ...(await workersOf(master))];
    expect(pids).toHaveLength(3);
    const gone = once(starter, 'exit');
    starter.kill('SIGKILL');
    await gone;
    await vi.waitFor(() => expect(pids.filter(isRunning)).toEqual([]), waitMs);
    // It could not remove its folder: the next one does.
    expect(await scratchFolders()).toHaveLength(1);
    const next = await start(one);
    await next.stop();
    expect(await scratchFolders()).toEqual([]);
  });
});

async function processesNaming(text: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
  return lines.filter((line) => line.includes(text));
}
