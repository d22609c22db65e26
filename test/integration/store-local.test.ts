// The local influxd: its life, its folder and what happens when it or the runner is killed.
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { startChild } from '../../lib/process.ts';
import { type Store, openStore } from '../../lib/store/store.ts';
import { line } from '../../lib/store/line-protocol.ts';
import { lockFile } from '../../lib/lock-file.ts';
import { accessUrl } from '../fixtures/influx-access.ts';
import { refused, statusesFor, useLocalStore } from '../fixtures/local-store.ts';
import { isRunning, stopWhole } from '../fixtures/processes.ts';

const local = useLocalStore();
const { newFolder, open } = local;

function pidOf(store: Store): number {
  const pid = store.pid();
  if (pid === null) throw new Error('no local influxd');
  return pid;
}

async function valuesOf(store: Store): Promise<unknown> {
  return (await store.query('SELECT * FROM /.*/')).map(({ name, columns, values }) => ({
    name,
    columns,
    values,
  }));
}

it('keeps what is written, in every spelling, from run to run', async () => {
  const folder = newFolder();
  const store = await open(folder);
  expect(store.version).toMatch(/^1\./);
  expect(store.influx.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  const tag = 'a b,c=d "e" \\f é';
  const text = 'say "hi"\\\nand \'bye\', x=1';
  await store.write([
    line(
      'odd m,1',
      { 'k 1': tag, none: '' },
      { value: 0.1, text, 'f=1': 1e-9 },
      1767323045123456789n,
    ),
  ]);
  const written = [
    {
      name: 'odd m,1',
      columns: ['time', 'f=1', 'k 1', 'text', 'value'],
      values: [['2026-01-02T03:04:05.123456789Z', 1e-9, tag, text, 0.1]],
    },
  ];
  expect(await valuesOf(store)).toEqual(written);
  const pid = pidOf(store);
  await store.close();
  await store.close();
  expect(isRunning(pid)).toBe(false);

  const next = await open(folder);
  expect(await valuesOf(next)).toEqual(written);
});

it("tells nobody about itself, can be reached on loopback only and ignores the shell's settings", async () => {
  vi.stubEnv('INFLUXDB_HTTP_BIND_ADDRESS', ':1');
  vi.stubEnv('INFLUXDB_HTTP_AUTH_ENABLED', 'false');
  onTestFinished(() => {
    vi.unstubAllEnvs();
  });
  const store = await open(newFolder());
  // Lines of /proc/net/tcp{,6}: "sl local_address rem_address st …"; state 0A is LISTEN. Matched to the process by its sockets' inodes.
  const inodes = socketsOf(pidOf(store));
  const listening = ['tcp', 'tcp6']
    .flatMap((file) => readFileSync(`/proc/net/${file}`, 'utf8').trim().split('\n').slice(1))
    .map((row) => row.trim().split(/\s+/))
    .filter((row) => row[3] === '0A' && inodes.has(row[9] ?? ''))
    .map((row) => row[1]?.split(':')[0]);
  // The other one is 224.0.0.1, a group: its port for backups, which asks for no password, is to be reached by nobody.
  expect(listening.toSorted()).toEqual(['0100007F', '010000E0']);
  const settings = await store.query('SHOW DATABASES');
  expect(settings[0]?.values).toEqual([['bakeoff']]);
});

function socketsOf(pid: number): Set<string> {
  return new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap(
      (fd) => /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? [],
    ),
  );
}

it('is not fooled by a stale lock file whose process id is in use again', async () => {
  const folder = newFolder();
  mkdirSync(folder);
  writeFileSync(join(folder, 'influxd.lock'), `${process.pid}\n`);
  expect(await (await open(folder)).revive()).toBe(true);
});

it('starts a killed influxd again, on the same port and with its data', async () => {
  const store = await open(newFolder());
  await store.write(['m value=1 1']);
  const { url } = store.influx;
  const pid = pidOf(store);
  process.kill(pid, 'SIGKILL');
  // No revive() in between: writing and asking do it themselves, here both at once.
  const [before] = await Promise.all([
    store.query('SELECT value FROM m'),
    store.write(['n value=2 2']),
  ]);
  expect(before[0]?.values).toEqual([['1970-01-01T00:00:00.000000001Z', 1]]);
  expect((await store.query('SELECT value FROM n'))[0]?.values).toEqual([
    ['1970-01-01T00:00:00.000000002Z', 2],
  ]);
  expect(store.influx.url).toBe(url);
  expect(pidOf(store)).not.toBe(pid);
});

it('starts an influxd that hangs again, with its data', async () => {
  const store = await open(newFolder());
  await store.write(['m value=1 1']);
  const pid = pidOf(store);
  await stopWhole(pid);
  expect(await store.revive()).toBe(true);
  expect((await store.query('SELECT value FROM m'))[0]?.values).toHaveLength(1);
  expect(isRunning(pidOf(store))).toBe(true);
  // Of one that was killed while it was stopped the last thread may take a moment.
  await vi.waitFor(() => expect(isRunning(pid)).toBe(false), { timeout: 10_000, interval: 20 });
});

it.each([
  ['all of it', ''],
  ['what it holds', 'data'],
  ['what it has taken last', 'wal'],
  ['its users', 'meta'],
])('begins anew where its folder was deleted: %s', async (_what, part) => {
  const folder = newFolder();
  const store = await open(folder);
  await store.write(['m value=1 1']);
  const pid = pidOf(store);
  rmSync(join(folder, part), { recursive: true, force: true });
  expect(await store.revive()).toBe(true);
  expect(isRunning(pid)).toBe(false);
  await store.write(['n value=2 2']);
  expect((await store.query('SELECT value FROM n'))[0]?.values).toHaveLength(1);
  expect(await statusesFor(store, {})).toEqual(refused);
  // What was there by now is on the disk.
  await store.close();
  expect(await (await open(folder)).query('SELECT value FROM n')).toHaveLength(1);
});

it('loses nothing that is written after a start at which influxd found its newest file damaged', async () => {
  const folder = newFolder();
  const store = await open(folder);
  await store.write(Array.from({ length: 1000 }, (_, index) => `old value=${index} ${index}`));
  await store.close();
  const [file = ''] = readdirSync(join(folder, 'wal'), { recursive: true })
    .map(String)
    .filter((name) => name.endsWith('.wal'));
  const damaged = openSync(join(folder, 'wal', file), 'r+');
  writeSync(damaged, Buffer.alloc(200, 'x'), 0, 200, 0);
  closeSync(damaged);
  const said = vi.spyOn(console, 'error').mockImplementation(() => undefined);
  onTestFinished(() => {
    said.mockRestore();
  });
  const next = await open(folder);
  expect(said.mock.calls).toEqual([
    [
      `InfluxDB found ${join(folder, 'wal', file)} damaged, as after a crash: the newest figures of earlier runs may be lost`,
    ],
  ]);
  await next.write(['new value=1 1', 'new value=2 2']);
  await next.close();
  expect((await (await open(folder)).query('SELECT value FROM new'))[0]?.values).toHaveLength(2);
  expect(said).toHaveBeenCalledOnce();
});

it('joins the one that was started meanwhile where its folder was deleted', async () => {
  const folder = newFolder();
  const store = await open(folder);
  const pid = pidOf(store);
  rmSync(folder, { recursive: true });
  const other = await open(folder);
  expect(await store.revive()).toBe(true);
  expect(store.influx).toEqual(other.influx);
  expect(isRunning(pid)).toBe(false);
  await store.close();
  await other.write(['m value=1 1']);
});

it('takes another port when its own was taken while it was dead', async () => {
  const store = await open(newFolder());
  await store.write(['m value=1 1']);
  const { url } = store.influx;
  const port = Number(new URL(url).port);
  const squatter = createServer((socket) => socket.destroy());
  onTestFinished(() => {
    squatter.close();
  });
  process.kill(pidOf(store), 'SIGKILL');
  await vi.waitFor(async () => {
    squatter.listen(port, '127.0.0.1');
    await once(squatter, 'listening');
  });
  expect(await store.revive()).toBe(true);
  expect(store.influx.url).not.toBe(url);
  expect(store.k6Output().out).toEqual([`influxdb=${store.influx.url}/bakeoff`]);
  expect((await store.query('SELECT value FROM m'))[0]?.values).toHaveLength(1);
});

it('does not come back after close', async () => {
  const store = await open(newFolder());
  const pid = pidOf(store);
  await store.close();
  expect(await store.revive()).toBe(false);
  expect(pidOf(store)).toBe(pid);
  expect(isRunning(pid)).toBe(false);
});

it('leaves no influxd behind when the runner is killed, and the next run starts at once', async () => {
  const folder = newFolder();
  const script = join(folder, '..', 'runner.mts');
  const storeModule = fileURLToPath(new URL('../../lib/store/store.ts', import.meta.url));
  writeFileSync(
    script,
    `
    import { openStore } from ${JSON.stringify(storeModule)};
    const store = await openStore({ influxdBinary: ${JSON.stringify(local.influxdBinary)}, folder: ${JSON.stringify(folder)} });
    await store.write(['m value=1 1']);
    console.log(store.pid());
    setTimeout(() => {}, 60_000);
  `,
  );
  const runner = await startChild({
    command: process.execPath,
    args: ['--import', import.meta.resolve('tsx'), script],
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => runner.stop());
  const [text] = (await once(runner.process.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
  const influxd = Number(text.toString());
  onTestFinished(() => {
    if (isRunning(influxd)) process.kill(influxd, 'SIGKILL');
  });
  // Stopped, it cannot follow the TERM that the runner's death sends it, and it still has the folder.
  await stopWhole(influxd);
  process.kill(runner.pid, 'SIGKILL');
  await runner.exited;
  const stolen = await lockFile(join(folder, 'influxd.lock'));
  process.kill(influxd, 'SIGCONT');
  expect(stolen).toBeNull();

  const store = await open(folder);
  expect(isRunning(influxd)).toBe(false);
  expect((await store.query('SELECT value FROM m'))[0]?.values).toHaveLength(1);
});

it('waits for the influxd of a killed runner that is still ending', async () => {
  const folder = newFolder();
  mkdirSync(folder);
  const ending = await startChild({
    command: 'flock',
    args: [join(folder, 'influxd.lock'), 'cat'],
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => ending.stop());
  ending.process.stdin?.write('locked\n');
  await once(ending.process.stdout as NodeJS.ReadableStream, 'data');
  const opening = open(folder);
  let isOpen = false;
  opening.then(
    () => {
      isOpen = true;
    },
    () => undefined,
  );
  await delay(1000);
  expect(isOpen).toBe(false);
  ending.process.stdin?.end();
  expect(await (await opening).revive()).toBe(true);
});

it('says why influxd does not start, and gives the folder free again', async () => {
  const folder = newFolder();
  mkdirSync(join(folder, 'data'), { recursive: true });
  writeFileSync(join(folder, 'meta'), 'in the way');
  await expect(openStore({ influxdBinary: local.influxdBinary, folder })).rejects.toThrow(
    /^influxd does not start: run: .*meta: not a directory.* \(its log: .*influxd\.log\)$/,
  );
  await expect(openStore({ influxdBinary: 'no-such-influxd', folder })).rejects.toThrow(
    /^influxd does not start: .*no-such-influxd/,
  );
  await expect(openStore({ influxdBinary: '/bin/true', folder })).rejects.toThrow(
    'influxd does not start: it ended without a word',
  );
  rmSync(join(folder, 'meta'));
  await open(folder);
});

it('ends an influxd that is still starting, at a word, and gives the folder free again', async () => {
  const [folder, programs] = [newFolder(), newFolder()];
  mkdirSync(programs);
  // It never listens.
  const slow = join(programs, 'influxd');
  const started = `${slow}.pid`;
  writeFileSync(slow, `#!/bin/sh\necho $$ > ${started}\nexec sleep 60\n`, { mode: 0o755 });
  const enough = new AbortController();
  const opening = openStore({ folder, influxdBinary: slow, signal: enough.signal });
  opening.catch(() => undefined);
  const pid = await vi.waitFor(
    () => Number(/\d+/.exec(readFileSync(started, 'utf8'))?.[0] ?? expect.fail('not yet')),
    { timeout: 20_000 },
  );
  enough.abort(new Error('enough'));
  await expect(opening).rejects.toThrow('enough');
  expect(isRunning(pid)).toBe(false);
  await (await open(folder)).close();
}, 60_000);

it('lets others go before it on its cores, where the kernel weighs sessions', async ({ skip }) => {
  const pid = pidOf(await open(newFolder()));
  skip(!existsSync('/proc/self/autogroup'), 'this kernel does not');
  expect(readFileSync(`/proc/${pid}/autogroup`, 'utf8')).toMatch(/ nice 10$/m);
});

it('says that a folder cannot be used', async () => {
  const folder = newFolder();
  writeFileSync(folder, 'a file');
  await expect(openStore({ influxdBinary: local.influxdBinary, folder })).rejects.toThrow(
    new RegExp(`^cannot use ${folder} for InfluxDB's data: EEXIST`),
  );
});

describe('what only looks', () => {
  async function view(folder: string): Promise<Store> {
    const store = await openStore({ influxdBinary: local.influxdBinary, folder, purpose: 'view' });
    onTestFinished(() => store.close());
    return store;
  }

  it('shares the influxd of a run, and starts it again at the same place when the run ends it', async () => {
    const folder = newFolder();
    const run = await open(folder);
    const look = await view(folder);
    expect([look.influx.url, pidOf(look)]).toEqual([run.influx.url, pidOf(run)]);
    await run.write(['m value=1 1']);
    const { url } = look.influx;
    await run.close();
    expect((await look.query('SELECT value FROM m'))[0]?.values).toHaveLength(1);
    expect(look.influx.url).toBe(url);
    expect(pidOf(look)).not.toBe(pidOf(run));
  });

  it('lets runs come and go, whose cores its influxd is moved to', async () => {
    const folder = newFolder();
    const look = await view(folder);
    const first = await open(folder);
    await first.write(['m value=1 1']);
    await first.close();
    expect(isRunning(pidOf(look))).toBe(true);

    const second = await openStore({ influxdBinary: local.influxdBinary, folder, cpus: [0] });
    onTestFinished(() => second.close());
    expect(pidOf(second)).toBe(pidOf(look));
    expect(
      /^Cpus_allowed_list:\s*(.*)$/m.exec(readFileSync(`/proc/${pidOf(look)}/status`, 'utf8'))?.[1],
    ).toBe('0');
  });

  it.each(['ends', 'is killed'])(
    'does not take a run down when it %s: the run starts an influxd of its own, at the same place',
    async (how) => {
      const folder = newFolder();
      const look = await view(folder);
      const run = await open(folder);
      const { url } = run.influx;
      const pid = pidOf(look);
      await run.write(['m value=1 1']);
      if (how === 'ends') await look.close();
      else process.kill(pid, 'SIGKILL');
      await run.write(['m value=2 2']);
      expect((await run.query('SELECT value FROM m'))[0]?.values).toHaveLength(2);
      expect(run.influx.url).toBe(url);
      expect(pidOf(run)).not.toBe(pid);
      await look.close();
      expect(isRunning(pidOf(run))).toBe(true);
    },
  );

  it("makes no database in somebody's InfluxDB", async () => {
    const somebodys = await open(newFolder());
    await somebodys.query('DROP DATABASE bakeoff');
    const url = accessUrl(somebodys.influx);
    await expect(openStore({ url, folder: newFolder(), purpose: 'view' })).rejects.toThrow(
      /has no database bakeoff yet: run a scenario into it first/,
    );
    await (await openStore({ url, folder: newFolder() })).close();
    await (await openStore({ url, folder: newFolder(), purpose: 'view' })).close();
  });
});
