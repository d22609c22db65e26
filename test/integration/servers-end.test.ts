// The real servers: refusals with a reason, usage while running, and complete removal.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, copyFile, mkdtemp, readFile, readdir } from 'node:fs/promises';
import { createServer } from 'node:net';
import path from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { h2o, nghttpd, nginx } from '../../lib/scenario/index.ts';
import type { ConfiguredServer, Protocol } from '../../lib/scenario/model.ts';
import type { StartOptions } from '../../lib/servers/index.ts';
import { waitUntilReady } from '../../lib/servers/ready.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { ensureTools } from '../../lib/setup/tools.ts';
import { listening } from '../fixtures/listening.ts';
import { ownConfig } from '../fixtures/own-files.ts';
import { getPage } from '../fixtures/page.ts';
import { descendants, halt, isRunning, stillRunning } from '../fixtures/processes.ts';
import {
  processesOf,
  servers,
  startedBy,
  useServers,
  welcomePage,
  withAccessLog,
} from '../fixtures/servers.ts';

const test = useServers();
const soon = { timeout: 30_000, interval: 20 };
const oneWorker = nginx(['base'], { workers: 1 });

const pageOf = (origin: string) => getPage(origin, origin.startsWith('http:'));

async function refusal(spec: ConfiguredServer, options: Partial<StartOptions> = {}) {
  const message = await test.start(spec, options).then(
    ({ origin }) => expect.fail(`it started at ${origin}`),
    (error: Error) => error.message,
  );
  expect(await test.scratchFolders()).toEqual([]);
  return message;
}

it('serves a page from a results folder that only root may enter', async () => {
  const closed = await mkdtemp(path.join(test.folder, 'closed-'));
  for (const [title, spec] of servers) {
    const server = await test.start(spec, { folder: path.join(closed, title) });
    expect((await pageOf(server.origin)).status).toBe(200);
    await server.stop();
  }
});

it.each(servers.filter(([, { name }]) => name !== 'nghttpd'))(
  "%s's log has the check for readiness under its own name",
  async (_, spec) => {
    const { logged, logFile } = await withAccessLog(spec);
    const server = await test.start(logged);
    for (let i = 0; i < 5; i++) await pageOf(server.origin);
    await server.stop();
    const lines = (await readFile(logFile, 'utf8')).trim().split('\n');
    expect(lines.filter((line) => !line.includes('bakeoff-ready'))).toHaveLength(5);
    expect(lines).toHaveLength(6);
  },
);

it.each(servers)('the usage of %s includes all tasks, and does not decrease', async (_, spec) => {
  const { h2load } = await ensureTools(['h2load']);
  const server = await test.start(spec, { workers: 2 });
  const cpuOfTasks = async () => {
    let seconds = 0;
    for (const pid of processesOf(server))
      for (const task of await readdir(`/proc/${pid}/task`))
        seconds += parseInt(await readFile(`/proc/${pid}/task/${task}/schedstat`, 'utf8')) / 1e9;
    return seconds;
  };
  // Read first, so that work between the two readings is in the usage too. A control group does not count CPU time from before a
  // process joined.
  const usedBefore = server.usage().cpuSeconds;
  const before = await cpuOfTasks();
  const http1 = server.origin.startsWith('http:') ? ['--h1'] : [];
  await once(
    spawn(h2load, ['-n', '2000', '-c', '20', ...http1, server.origin], { stdio: 'ignore' }),
    'exit',
  );
  const tasks = (await cpuOfTasks()) - before;
  const rounding = 2e-6;
  expect(tasks).toBeGreaterThan(0.01);
  // New threads are detected within a second.
  await vi.waitFor(
    () => expect(server.usage().cpuSeconds - usedBefore).toBeGreaterThan(tasks - rounding),
    soon,
  );
  const after = server.usage();
  expect(after.rssBytes).toBeGreaterThan(3_000_000);
  await server.stop();
  expect(server.usage().cpuSeconds).toBeGreaterThan(after.cpuSeconds - rounding);
  await vi.waitFor(() => expect(server.usage().rssBytes).toBe(0), soon);
});

it.each([
  [nginx, 'http {\n  sendfile maybe;\n}', '2: nginx', /invalid value "maybe" in "sendfile"/],
  [h2o, 'max-connections: many', '1: h2o', /max-connections, argument must/],
  [nghttpd, '\n--bogus=1', '2: nghttpd', /does not know "--bogus"/],
])(
  'refuses a config of %o with the message of the server, file and line',
  async (kind, text, place, message) => {
    const file = await ownConfig(text);
    const refused = await refusal(kind(['h2', file], { workers: 1 }));
    expect(refused).toMatch(message);
    expect(refused.split('\n')).toEqual([expect.stringContaining(`${file}:${place} `)]);
  },
);

it.each(servers)(
  'refuses for %s a port in use, a wrong page and a wrong binary',
  async (_, spec) => {
    const port = await listening(createServer());
    expect(await refusal(spec, { port })).toContain(`port ${port} of 127.0.0.1 is in use: `);
    const page = { ...welcomePage, bodyBytes: 611 };
    expect(await refusal(spec, { page })).toContain(' 612 bytes instead of 611');
    for (const [binary, message] of [
      ['/nowhere/server', 'No such file'],
      ['/bin/true', ''],
    ] as const)
      expect(await refusal({ ...spec, binary })).toMatch(
        new RegExp(
          `^${binary} is not an ${spec.name} that runs here \\(.*${message}.*\\): name in its place the one`,
        ),
      );
  },
);

const tls12 = 'http { server { ssl_protocols TLSv1; ssl_ciphers AES128-SHA:@SECLEVEL=0; } }';
const tls = nginx(['h2'], { workers: 1 });
const noAlpn = 'http { server { listen 443 ssl; } }';
it.each<[string, ConfiguredServer, string, Protocol | undefined, RegExp]>([
  ['HTTP/1.1', nghttpd(['h2'], { workers: 1 }), '', 'http/1.1', /^nghttpd speaks HTTP\/2 only/],
  [
    'h2 without ALPN',
    tls,
    noAlpn,
    'h2',
    / TLS: its config leaves it out of ALPN \(in nginx: http2\)$/,
  ],
  ['an old TLS', tls, tls12, undefined, /has no TLS that fits: .*alert.*$/],
])('refuses a load with %s', async (_, spec, more, protocol, message) => {
  const config = more === '' ? spec.config : [...spec.config, await ownConfig(more)];
  const load = protocol === undefined ? {} : { protocol };
  expect(await refusal({ ...spec, config }, { load })).toMatch(message);
});

it.each(servers.slice(1))('refuses TLS that %s does not support', async (_, spec) => {
  const cipher = (name: string): Partial<StartOptions> => ({
    load: { tls: { maxVersion: 'TLSv1.2', ciphers: [name], curves: ['P-256'] } },
  });
  const no = /^https:.* has no TLS that fits: /;
  expect(await refusal(spec, cipher('ECDHE-NOTHING'))).toMatch(no);
  expect(await refusal(spec, { load: { tls: { curves: ['P-999'] } } })).toMatch(no);
  await (await test.start(spec, cipher('ECDHE-RSA-AES128-GCM-SHA256'))).stop();
  // Not every Node knows the first one.
  const curves = ['X25519MLKEM768', 'P-256'];
  await (await test.start(spec, { load: { tls: { curves } } })).stop();
  const ciphers = ['ECDHE-RSA-AES128-GCM-SHA256'];
  await test.start(spec, { load: { tls: { minVersion: 'TLSv1.3', ciphers } } });
});

it.each([
  [oneWorker, 'https', 'http/1.1', /answers without TLS, where TLS is expected$/],
  [tls, 'http', 'h2c', /does not speak HTTP\/2 without TLS|did not answer over h2c/],
] as const)(
  'refuses the other kind of TLS: %j over %s, %s',
  async (spec, scheme, protocol, message) => {
    const { origin } = await test.start(spec);
    const load = { protocol };
    const check = { origin: origin.replace(/^https?/, scheme), page: welcomePage, load };
    const ready = waitUntilReady(check, new AbortController().signal, 1000);
    await expect(ready).rejects.toThrow(message);
  },
);

it.runIf(process.getuid?.() === 0)(
  'a program that hides whether it has its port is refused',
  async ({ skip }) => {
    const asNobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--'];
    const [command = '', ...becomes] = asNobody;
    const reading = spawnSync(command, [...becomes, 'cat', path.join(projectRoot, 'package.json')]);
    skip(reading.status !== 0, 'the checkout is closed to other users, as in /root');
    const folder = await mkdtemp(path.join(test.folder, 'open-'));
    await chmod(folder, 0o777);
    const binary = path.join(folder, 'h2o');
    // Linux hides the open files of programs that are unreadable or have capabilities.
    await copyFile(test.binaries.h2o, binary);
    await chmod(binary, 0o711);
    const spec = { ...h2o(['base'], { workers: 1 }), binary };
    const options = { folder: path.join(folder, 'round'), readyLimitMs: 1000 };
    const { printed } = await startedBy(
      spec,
      { binaries: {}, ...options },
      {
        before: asNobody,
        env: { TMPDIR: folder, HOME: folder, BAKEOFF_HOME: folder },
      },
    );
    expect(printed).toMatch(
      /^h2o \(pid \d+\) hides from this user whether 127\.0\.0\.1:\d+ is its own: /,
    );
  },
);

const aborts = [0, 40].flatMap((afterMs) =>
  servers.map(([title, spec]) => [afterMs, title, spec] as const),
);
it.each(aborts)(
  'an abort %i ms after the start of %s leaves nothing behind',
  async (afterMs, _, spec) => {
    const controller = new AbortController();
    const round = await mkdtemp(path.join(test.folder, 'aborted-'));
    const timer = setTimeout(() => controller.abort(new Error('enough')), afterMs);
    onTestFinished(() => clearTimeout(timer));
    const outcome = await test.start(spec, { folder: round, signal: controller.signal }).then(
      (server) => server.stop().then(() => 'started'),
      (error: Error) => error.message,
    );
    expect(['enough', 'started']).toContain(outcome);
    expect(await test.scratchFolders()).toEqual([]);
    for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name)))
      expect(await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).not.toContain(round);
  },
);

it.each(servers)('a killed %s is reported in one line, and its processes end', async (_, spec) => {
  const server = await test.start(spec, { workers: 2 });
  const pids = processesOf(server);
  process.kill(server.pid, 'SIGKILL');
  expect(await server.died).toMatch(
    new RegExp(`^${spec.name} \\(pid ${server.pid}\\) ended by SIGKILL(; its log ends: .*)?$`),
  );
  expect(pids.filter(isRunning)).toEqual([]);
  expect(await test.scratchFolders()).toEqual([]);
  await server.stop();
});

const stopped = ['nginx base, stopped', oneWorker] as const;
it.each([...servers, stopped])('%s ends with the parent process', async (title, spec) => {
  const { binaries } = test;
  const options = { binaries, folder: path.join(test.folder, `orphaned ${title}`), workers: 2 };
  const { printed, runner } = await startedBy(spec, options);
  const pid = Number(printed);
  const processes = descendants(runner.pid as number);
  expect(processes.map((seen) => seen.pid)).toContain(pid);
  if (title === stopped[0])
    for (const each of [pid, ...descendants(pid).map((descendant) => descendant.pid)]) halt(each);
  const ended = once(runner, 'exit');
  runner.kill('SIGKILL');
  await ended;
  await vi.waitFor(() => expect(stillRunning(processes)).toEqual([]), soon);
  expect(await test.scratchFolders()).toEqual([]);
});
