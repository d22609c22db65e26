// The real servers: refused where they have to be, watched while they run, and gone afterwards.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, readdir, writeFile } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { h2o, nghttpd, nginx } from '../../lib/scenario/index.ts';
import type { ConfiguredServer } from '../../lib/scenario/model.ts';
import type { RunningServer, StartOptions } from '../../lib/servers/index.ts';
import { freePort } from '../../lib/servers/ports.ts';
import { waitUntilReady } from '../../lib/servers/ready.ts';
import type { Protocol } from '../../lib/servers/server.ts';
import { ensureTools } from '../../lib/setup/tools.ts';
import { listening } from '../fixtures/listening.ts';
import { ownConfig } from '../fixtures/own-files.ts';
import { getPage } from '../fixtures/page.ts';
import { descendants, isRunning, stillRunning } from '../fixtures/processes.ts';
import {
  processesOf,
  servers,
  useServers,
  welcomePage,
  withAccessLog,
} from '../fixtures/servers.ts';

// The files of a project share their modules: these are to be this one's, with what takes their place.
vi.hoisted(() => vi.resetModules());
vi.mock(import('../../lib/servers/ports.ts'), async (original) => {
  const ports = await original();
  return { ...ports, freePort: vi.fn(ports.freePort) };
});

const test = useServers();
const waitMs = { timeout: 10_000, interval: 20 };
const one = nginx(['base'], { workers: 1 });
const variable = { nginx: 'NGINX_BIN', h2o: 'H2O_BIN', nghttpd: 'NGHTTPD_BIN' };

const problemOf = async (starting: Promise<RunningServer>): Promise<Error> =>
  starting.then(
    (server) => Promise.reject(new Error(`it started at ${server.origin}`)),
    (error: Error) => error,
  );

it('serves a page from results that only root may enter', async () => {
  const closed = await mkdtemp(path.join(test.folder, 'closed-'));
  for (const [title, spec] of servers) {
    const server = await test.start(spec, { folder: path.join(closed, title) });
    expect((await getPage(server.origin, server.origin.startsWith('http:'))).status).toBe(200);
    await server.stop();
  }
});

it.each(servers.filter(([, { name }]) => name !== 'nghttpd'))(
  "%s's log has the check for readiness under a name of its own",
  async (_, spec) => {
    const { logged, logFile } = await withAccessLog(spec);
    const server = await test.start(logged);
    for (let i = 0; i < 5; i++) await getPage(server.origin, server.origin.startsWith('http:'));
    await server.stop();
    const lines = (await readFile(logFile, 'utf8')).trim().split('\n');
    expect(lines.filter((line) => !line.includes('bakeoff-ready'))).toHaveLength(5);
    expect(lines).toHaveLength(6);
  },
);

describe('usage', () => {
  it.each(servers)(
    'of %s rises with the work of all its tasks, and stays when they are gone',
    async (_, spec) => {
      const { h2load } = await ensureTools(['h2load']);
      const server = await test.start(spec, { workers: 2 });
      const tasksOf = async (): Promise<string[]> =>
        (
          await Promise.all(
            processesOf(server).map(async (pid) =>
              (await readdir(`/proc/${pid}/task`)).map(
                (task) => `/proc/${pid}/task/${task}/schedstat`,
              ),
            ),
          )
        ).flat();
      const cpuOfTasks = async (): Promise<number> =>
        (
          await Promise.all(
            (await tasksOf()).map(
              async (file) => Number((await readFile(file, 'utf8')).split(' ')[0]) / 1e9,
            ),
          )
        ).reduce((sum, seconds) => sum + seconds, 0);
      const before = { usage: server.usage(), tasks: await cpuOfTasks() };
      const load = spawn(
        h2load,
        [
          '-n',
          '2000',
          '-c',
          '20',
          ...(server.origin.startsWith('http:') ? ['--h1'] : []),
          server.origin,
        ],
        { stdio: 'ignore' },
      );
      await once(load, 'exit');
      const tasks = await cpuOfTasks();
      const rounding = 1e-6;
      expect(tasks - before.tasks).toBeGreaterThan(0.01);
      // Threads that the load brought about are seen within a second.
      await vi.waitFor(
        () => expect(server.usage().cpuSeconds).toBeGreaterThan(tasks - rounding),
        waitMs,
      );
      const after = server.usage();
      expect(after.cpuSeconds - before.usage.cpuSeconds).toBeGreaterThan(
        (tasks - before.tasks) / 2,
      );
      expect(after.rssBytes).toBeGreaterThan(3_000_000);
      await server.stop();
      expect(server.usage().cpuSeconds).toBeGreaterThan(after.cpuSeconds - rounding);
      // Looked up once a second.
      await vi.waitFor(() => expect(server.usage().rssBytes).toBe(0), waitMs);
    },
  );
});

describe('what is refused', () => {
  it.each([
    [
      nginx,
      'http {\n  sendfile maybe;\n}',
      /invalid value "maybe" in "sendfile" directive/,
      /^line \d+: sendfile maybe; {2}# own\.conf$/,
    ],
    [
      h2o,
      'max-connections: many',
      /in command max-connections, argument must match the format/,
      /^line \d+: max-connections: many # own\.conf$/,
    ],
  ])(
    "a config that %o does not accept: the server's words, the file and the line",
    async (kind, text, said, line) => {
      const spec = kind(['h2', await ownConfig(text)], { workers: 1 });
      const [first = '', ...rest] = (await problemOf(test.start(spec))).message.split('\n');
      expect(first).toBe(
        `${spec.name} does not accept its config ${test.folder}/round/${spec.name}.conf:`,
      );
      expect(rest[0]).toMatch(said);
      expect(rest[1]).toMatch(line);
      expect(rest).toHaveLength(2);
      expect(await test.scratchFolders()).toEqual([]);
    },
  );

  it('flags that nghttpd does not accept: its words', async () => {
    const problem = async (flag: string): Promise<string> =>
      (await problemOf(test.start(nghttpd(['h2', await ownConfig(flag)], { workers: 1 })))).message;
    expect(await problem('--bogus=1')).toMatch(
      /^nghttpd \(pid \d+\) ended with code 1; .*unrecognized option '--bogus=1'$/,
    );
    expect(await problem('-m many')).toMatch(
      /^nghttpd \(pid \d+\) ended with code 1; its log ends: .*invalid argument: many$/,
    );
    expect(await test.scratchFolders()).toEqual([]);
  });

  it('a port in use, when the caller gave it', async () => {
    const port = await listening(createServer());
    for (const [, spec] of servers) {
      expect((await problemOf(test.start(spec, { port }))).message).toBe(
        `port ${port} of 127.0.0.1 is in use: end what listens there, or take another port`,
      );
    }
    expect(await test.scratchFolders()).toEqual([]);
  });

  it.each(servers)('a page of another length, or none, at once: %s', async (_, spec) => {
    await expect(test.start(spec, { page: { ...welcomePage, bodyBytes: 611 } })).rejects.toThrow(
      /answers with 612 bytes instead of 611/,
    );
    await expect(test.start(spec, { page: { ...welcomePage, path: '/none' } })).rejects.toThrow(
      /none answers with status 404 instead of 200/,
    );
    expect(await test.scratchFolders()).toEqual([]);
  });

  it.each(servers)('a binary that is missing or something else: %s', async (_, spec) => {
    await expect(test.start({ ...spec, binary: '/nowhere/server' })).rejects.toThrow(
      new RegExp(
        `^/nowhere/server is not an ${spec.name} that runs here \\(.*No such file.*\\): set ${variable[spec.name]}`,
      ),
    );
    await expect(test.start({ ...spec, binary: '/bin/true' })).rejects.toThrow(
      new RegExp(
        `^/bin/true is not an ${spec.name} that runs here \\(.+\\): set ${variable[spec.name]} to the one to measure$`,
      ),
    );
  });

  it('cores that are not there', async () => {
    await expect(test.start(one, { cpus: [4095] })).rejects.toThrow(
      /^nginx \(pid \d+\) ended with code 1; its log ends: taskset: /,
    );
    expect(await test.scratchFolders()).toEqual([]);
  });

  it('a load of another protocol', async () => {
    const [, , , [, onlyHttp2]] = servers as unknown as [
      unknown,
      unknown,
      unknown,
      [string, ConfiguredServer],
    ];
    await expect(test.start(onlyHttp2, { protocol: 'http/1.1' })).rejects.toThrow(
      'nghttpd speaks HTTP/2 only: choose the protocol h2 or h2c for it, or another server',
    );
    await expect(test.start(one, { protocol: 'h2' })).rejects.toThrow(
      /^the load is HTTP\/2 over TLS \(h2\), and the server's config has no TLS/,
    );
    await expect(test.start(one, { protocol: 'h2c' })).rejects.toThrow(
      /^http:.* does not speak HTTP\/2 without TLS \(h2c\)$/,
    );
    await expect(test.start(h2o(['h2'], { workers: 1 }), { protocol: 'h2c' })).rejects.toThrow(
      /^the load is HTTP\/2 without TLS \(h2c\), and the server's config has TLS/,
    );
    const noAlpn = nginx(['h2', await ownConfig('http { server { listen 443 ssl; } }')], {
      workers: 1,
    });
    await expect(test.start(noAlpn, { protocol: 'h2' })).rejects.toThrow(
      /^https:.* does not speak HTTP\/2 over TLS: its config leaves it out of ALPN \(in nginx: http2\)$/,
    );
    const oldTls = nginx(
      [
        'h2',
        await ownConfig(
          'http { server { ssl_protocols TLSv1; ssl_ciphers AES128-SHA:@SECLEVEL=0; } }',
        ),
      ],
      { workers: 1 },
    );
    await expect(test.start(oldTls)).rejects.toThrow(/^https:.* has no TLS that fits: .*alert.*$/);
    expect(await test.scratchFolders()).toEqual([]);
  });

  it.each(servers.slice(1))(
    'a load that offers TLS which the server does not take: %s',
    async (_, spec) => {
      const cipher = (name: string): Partial<StartOptions> => ({
        tls: { maxVersion: 'TLSv1.2', ciphers: [name], curves: ['P-256'] },
      });
      // The machine's certificate is one for RSA. h2o closes without an alert, as one that is not ready yet might, and is asked until the limit.
      if (spec.name !== 'h2o')
        await expect(test.start(spec, cipher('ECDHE-ECDSA-AES128-GCM-SHA256'))).rejects.toThrow(
          /^https:.* has no TLS that fits: .*handshake failure.*$/,
        );
      await expect(test.start(spec, cipher('ECDHE-NOTHING'))).rejects.toThrow(
        /^https:.* has no TLS that fits: .*no cipher match$/,
      );
      await expect(test.start(spec, { tls: { curves: ['P-999'] } })).rejects.toThrow(
        /^https:.* has no TLS that fits: Failed to set ECDH curve$/,
      );
      await test.start(spec, cipher('ECDHE-RSA-AES128-GCM-SHA256'));
      await test.start(spec, {
        tls: { minVersion: 'TLSv1.3', ciphers: ['ECDHE-RSA-AES128-GCM-SHA256'] },
      });
    },
  );
});

it('tells TLS where none is expected, and the reverse', async () => {
  const page = welcomePage;
  const answer = async (
    server: RunningServer,
    scheme: string,
    protocol: Protocol,
  ): Promise<string> =>
    waitUntilReady(
      { origin: server.origin.replace(/^https?/, scheme), page, protocol },
      new AbortController().signal,
      1000,
    ).then(
      () => 'served',
      (error: Error) => error.message,
    );
  const plain = await test.start(one);
  expect(await answer(plain, 'https', 'h2')).toMatch(
    / answers without TLS, where TLS is expected$/,
  );
  expect(await answer(plain, 'https', 'http/1.1')).toMatch(
    / answers without TLS, where TLS is expected$/,
  );
  for (const [, spec] of servers.slice(1)) {
    const secure = await test.start(spec);
    expect(await answer(secure, 'http', 'h2c')).toMatch(
      / does not speak HTTP\/2 without TLS \(h2c\)$| did not answer over h2c within 1 s: /,
    );
    expect(await answer(secure, 'http', 'http/1.1')).toMatch(
      / answers with status 400 instead of 200$| did not answer over http\/1.1 within 1 s: /,
    );
    await secure.stop();
  }
});

it.each(servers)(
  '%s takes another port when a server with the same page was faster on the first one',
  async (_, spec) => {
    const port = await listening(createHttpServer((_, response) => response.end('x'.repeat(612))));
    vi.mocked(freePort).mockClear().mockResolvedValueOnce(port);
    const server = await test.start(spec);
    expect(freePort).toHaveBeenCalledTimes(2);
    expect(server.origin).not.toContain(`:${port}`);
    expect(
      String((await getPage(server.origin, server.origin.startsWith('http:'))).body),
    ).toContain('bakeoff');
    await server.stop();
    expect(await test.scratchFolders()).toEqual([]);
  },
);

it.each(
  [0, 20, 40, 60].flatMap((afterMs) =>
    servers.map(([title, spec]) => [afterMs, title, spec] as const),
  ),
)('an abort after %i ms of the start of %s leaves nothing running', async (afterMs, _, spec) => {
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
  expect(await processesNaming(round)).toEqual([]);
});

describe('an end that nobody asked for', () => {
  it.each(servers)(
    'of %s settles `died` with one line, and takes its processes along',
    async (_, spec) => {
      const server = await test.start(spec, { workers: 2 });
      const pids = processesOf(server);
      process.kill(server.pid, 'SIGKILL');
      expect(await server.died).toMatch(
        new RegExp(`^${spec.name} \\(pid ${server.pid}\\) ended by SIGKILL(; its log ends: .*)?$`),
      );
      expect(pids.filter(isRunning)).toEqual([]);
      expect(await test.scratchFolders()).toEqual([]);
      await server.stop();
    },
  );

  it.each(servers)('of the process that started %s ends all of it', async (title, spec) => {
    const script = path.join(test.folder, 'starter.mts');
    const index = pathToFileURL(
      fileURLToPath(new URL('../../lib/servers/index.ts', import.meta.url)),
    ).href;
    const options = {
      binaries: test.binaries,
      folder: path.join(test.folder, `orphaned ${title}`),
      cpus: [0],
      workers: 2,
      page: welcomePage,
    };
    await writeFile(
      script,
      `
      import { startServer } from ${JSON.stringify(index)};
      const server = await startServer(${JSON.stringify(spec)}, ${JSON.stringify(options)});
      console.log(server.pid);
      setInterval(() => undefined, 1000);
    `,
    );
    const starter = spawn(process.execPath, ['--import', 'tsx', script], {
      cwd: fileURLToPath(new URL('../..', import.meta.url)),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void starter.kill('SIGKILL'));
    await once(starter.stdout, 'data');
    const processes = descendants(starter.pid as number).filter(
      ({ command }) => command !== 'esbuild',
    );
    expect(processes.map(({ command }) => command)).toContain(spec.name);
    const gone = once(starter, 'exit');
    starter.kill('SIGKILL');
    await gone;
    await vi.waitFor(() => expect(stillRunning(processes)).toEqual([]), waitMs);
    // It could not remove its folder: the next one does.
    expect(await test.scratchFolders()).toHaveLength(1);
    const next = await test.start(one);
    await next.stop();
    expect(await test.scratchFolders()).toEqual([]);
  });
});

async function processesNaming(text: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(
    pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')),
  );
  return lines.filter((line) => line.includes(text));
}
