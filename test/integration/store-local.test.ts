// The local influxd: start and end, folder, password.
import { once } from 'node:events';
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { lockFile } from '../../lib/machine/locks.ts';
import { line } from '../../lib/influx/line-protocol.ts';
import { type Store, openStore } from '../../lib/features/influxdb/store.ts';
import { influxdIn, useLocalStore } from '../fixtures/local-store.ts';
import { start } from '../fixtures/node-process.ts';
import { isRunning, stopWhole } from '../fixtures/processes.ts';

const local = useLocalStore();
const { newFolder, open } = local;

const countOf = async (store: Store, measurement = 'm') =>
  (await store.query(`SELECT value FROM ${measurement}`))[0]?.values.length;

async function statusesFor({ influx: { url } }: Store, headers: Record<string, string> = {}) {
  const ask = (q: string) =>
    fetch(`${url}/query?${new URLSearchParams({ db: 'bakeoff', q })}`, { method: 'POST', headers });
  const answers = await Promise.all([
    ask('SELECT * FROM /.*/'),
    ask('DROP DATABASE bakeoff'),
    fetch(`${url}/write?db=bakeoff`, { method: 'POST', headers, body: 'm value=666 1' }),
  ]);
  return answers.map(({ status }) => status);
}
const refused = [401, 401, 401];

it('keeps data from run to run, for any spelling of the folder', async () => {
  const folder = newFolder();
  const store = await open(folder);
  expect(store.version).toMatch(/^1\./);
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
  const pid = influxdIn(folder);
  await store.close();
  await store.close();
  expect(isRunning(pid)).toBe(false);
  expect(await store.revive()).toBe(false);

  const [series] = await (await open(folder)).query('SELECT * FROM /.*/');
  expect(series).toMatchObject({
    name: 'odd m,1',
    columns: ['time', 'f=1', 'k 1', 'text', 'value'],
    values: [['2026-01-02T03:04:05.123456789Z', 1e-9, tag, text, 0.1]],
  });
});

it('is reachable on loopback only and ignores settings of the shell', async () => {
  vi.stubEnv('INFLUXDB_HTTP_BIND_ADDRESS', ':1');
  vi.stubEnv('INFLUXDB_HTTP_AUTH_ENABLED', 'false');
  onTestFinished(() => void vi.unstubAllEnvs());
  const folder = newFolder();
  const store = await open(folder);
  // Lines of /proc/net/tcp{,6}: "sl local_address rem_address st …"; state 0A is LISTEN. Matched to the process by socket inode.
  const openFiles = `/proc/${influxdIn(folder)}/fd`;
  const sockets = readdirSync(openFiles).map((fd) => readlinkSync(join(openFiles, fd)));
  const listening = ['tcp', 'tcp6']
    .flatMap((file) => readFileSync(`/proc/net/${file}`, 'utf8').trim().split('\n').slice(1))
    .map((row) => row.trim().split(/\s+/))
    .filter((row) => row[3] === '0A' && sockets.includes(`socket:[${row[9]}]`))
    .map((row) => row[1]?.split(':')[0]);
  // The backup port needs no password, so it is on 224.0.0.1, which is unreachable.
  expect(listening.toSorted()).toEqual(['0100007F', '010000E0']);
  expect(await statusesFor(store)).toEqual(refused);
});

it.each([
  ['was killed', (pid: number) => void process.kill(pid, 'SIGKILL')],
  ['hangs', stopWhole],
])(
  'is restarted on the same port with its data when it %s',
  async (_how, stop) => {
    const folder = newFolder();
    const store = await open(folder);
    await store.write(['m value=1 1']);
    const [{ url }, pid] = [{ ...store.influx }, influxdIn(folder)];
    await stop(pid);
    // Writes and queries restart influxd; here both at once.
    const [count] = await Promise.all([countOf(store), store.write(['n value=2 2'])]);
    expect([count, await countOf(store, 'n')]).toEqual([1, 1]);
    expect(store.influx.url).toBe(url);
    await vi.waitFor(() => expect(isRunning(pid)).toBe(false), { timeout: 10_000, interval: 20 });
  },
  60_000,
);

it.each(['', 'data', 'wal', 'meta'])(
  'starts with an empty database after its folder was deleted: ./%s',
  async (part) => {
    const folder = newFolder();
    const store = await open(folder);
    await store.write(['m value=1 1']);
    rmSync(join(folder, part), { recursive: true, force: true });
    expect(await store.revive()).toBe(true);
    await store.write(['n value=2 2']);
    expect(await statusesFor(store)).toEqual(refused);
    await store.close();
    expect(await countOf(await open(folder), 'n')).toBe(1);
  },
);

it('loses no data if the newest file is damaged', async () => {
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
  const logged = vi.spyOn(console, 'error').mockImplementation(() => undefined);
  onTestFinished(() => logged.mockRestore());
  const next = await open(folder);
  expect(logged.mock.calls.join()).toContain(`${join(folder, 'wal', file)} damaged`);
  await next.write(['new value=1 1', 'new value=2 2']);
  await next.close();
  expect(await countOf(await open(folder), 'new')).toBe(2);
  expect(logged).toHaveBeenCalledOnce();
});

it('uses another port if the old one was taken meanwhile', async () => {
  const folder = newFolder();
  const store = await open(folder);
  await store.write(['m value=1 1']);
  const { url } = store.influx;
  const squatter = createServer((socket) => socket.destroy());
  onTestFinished(() => void squatter.close());
  process.kill(influxdIn(folder), 'SIGKILL');
  await vi.waitFor(async () => {
    squatter.listen(Number(new URL(url).port), '127.0.0.1');
    await once(squatter, 'listening');
  }, 20_000);
  expect(await store.revive()).toBe(true);
  expect(store.influx.url).not.toBe(url);
  expect(store.k6Output().out).toEqual([`influxdb=${store.influx.url}/bakeoff`]);
  expect(await countOf(store)).toBe(1);
});

it('ends after bakeoff is killed, even if it was stopped, and keeps its data', async () => {
  const folder = newFolder();
  const options = { influxdBinary: local.influxdBinary, folder };
  const script = `
    import { openStore } from './lib/features/influxdb/store.ts';
    const store = await openStore(${JSON.stringify(options)});
    await store.write(['m value=1 1']);
    console.log('written');
    setTimeout(() => {}, 60_000);`;
  const args = ['--import', 'tsx', '--input-type=module', '-e', script];
  const runner = start(args, process.env);
  await vi.waitFor(() => expect(runner.stdout(), runner.stderr()).toBe('written\n'), 20_000);
  const influxd = influxdIn(folder);
  onTestFinished(() => {
    if (isRunning(influxd)) process.kill(influxd, 'SIGKILL');
  });
  await stopWhole(influxd);
  runner.process.kill('SIGKILL');
  await vi.waitFor(() => expect(isRunning(influxd)).toBe(false), 20_000);
  expect(await countOf(await open(folder))).toBe(1);
});

it('reports why influxd does not start, and releases the folder', async () => {
  const folder = newFolder();
  mkdirSync(join(folder, 'data'), { recursive: true });
  writeFileSync(join(folder, 'meta'), 'in the way');
  const { influxdBinary } = local;
  for (const [binary, reason] of [
    [influxdBinary, /^influxd does not start: run: .*meta: not a directory.*influxd\.log\)$/],
    ['/bin/true', /^influxd does not start: it ended without a word/],
  ] as const) {
    const viewed = { influxdBinary: binary, folder, purpose: 'view' } as const;
    await expect(openStore(viewed)).rejects.toThrow(reason);
    // The run continues without a database.
    expect((await openStore({ ...viewed, purpose: 'run' })).failure()).toMatch(reason);
  }
  rmSync(join(folder, 'meta'));
  await open(folder);

  const file = newFolder();
  writeFileSync(file, '');
  await expect(openStore({ influxdBinary, folder: file, purpose: 'view' })).rejects.toThrow(
    `cannot use ${file} for InfluxDB's data: EEXIST`,
  );
});

async function view(folder: string) {
  const store = await openStore({ influxdBinary: local.influxdBinary, folder, purpose: 'view' });
  onTestFinished(() => store.close());
  return store;
}

it('Grafana shares the influxd of a run, and restarts it when the run has ended it', async () => {
  const folder = newFolder();
  const [run, look] = await Promise.all([open(folder), view(folder)]);
  expect(look.influx).toEqual(run.influx);
  await run.write(['m value=1 1']);
  const { url } = look.influx;
  await run.close();
  expect(await countOf(look)).toBe(1);
  expect(look.influx.url).toBe(url);
});

it.each(['ends', 'is killed'])(
  'the influxd of Grafana serves runs on their cores, and is replaced when it %s',
  async (how) => {
    const folder = newFolder();
    const look = await view(folder);
    const pid = influxdIn(folder);
    const run = await openStore({ influxdBinary: local.influxdBinary, folder, cpus: [0] });
    onTestFinished(() => run.close());
    expect(influxdIn(folder)).toBe(pid);
    expect(run.influx).toEqual(look.influx);
    expect(readFileSync(`/proc/${pid}/status`, 'utf8')).toMatch(/^Cpus_allowed_list:\s*0$/m);
    const { url } = run.influx;
    await run.write(['m value=1 1']);
    if (how === 'ends') await look.close();
    else process.kill(pid, 'SIGKILL');
    await run.write(['m value=2 2']);
    expect(await countOf(run)).toBe(2);
    expect(run.influx.url).toBe(url);
    await look.close();
    expect(isRunning(influxdIn(folder))).toBe(true);
  },
);

it('the password is required after each start, and only the owner can read it', async () => {
  const folder = newFolder();
  for (const _start of ['first', 'second']) {
    const store = await open(folder);
    const right = store.influx.credentials?.password ?? '';
    expect(right).toMatch(/^[\w-]{32}$/);
    const file = join(folder, 'password');
    expect(readFileSync(file, 'utf8')).toBe(right);
    expect([folder, file].map((path) => statSync(path).mode & 0o777)).toEqual([0o700, 0o600]);
    for (const tried of [`Basic ${btoa('bakeoff:wrong')}`, `Token ${right}`])
      expect(await statusesFor(store, { Authorization: tried })).toEqual(refused);
    expect(await store.query('SHOW USERS')).toMatchObject([{ values: [['bakeoff', true]] }]);
    for (const process of readdirSync('/proc').filter((name) => /^\d+$/.test(name)))
      expect(commandLine(process)).not.toContain(right);
    expect(store.k6Output().env).toMatchObject({ K6_INFLUXDB_PASSWORD: right });
    expect(store.k6Output().out.join()).not.toContain(right);
    await store.close();
  }
});

it('a start retries if influxd is too busy to create the database', async () => {
  const folder = newFolder();
  const busy = join(folder, '..', 'busy');
  // Responds like influxd, but refuses the first two CREATE statements.
  const script = `#!${process.execPath}
    const bySocket = /unix-socket-enabled = true/.test(require('node:fs').readFileSync('influxd.conf', 'utf8'));
    let refusals = 2;
    const server = require('node:http').createServer((request, response) => {
      let body = '';
      request.on('data', (more) => (body += more)).on('end', () => {
        const isBusy = body.includes('CREATE') && refusals-- > 0;
        response.writeHead(isBusy ? 503 : 200, { 'X-Influxdb-Version': '1.6.7' });
        response.end(isBusy ? 'timeout' : '{"results":[{"series":[{"name":"databases","columns":["name"],"values":[["bakeoff"]]}]}]}');
      });
    });
    require('node:fs').mkdirSync('meta', { recursive: true });
    if (bySocket) server.listen('first-user.sock');
    else server.listen(0, '127.0.0.1', () => console.log('msg="Listening on HTTP" addr=127.0.0.1:' + server.address().port));`;
  writeFileSync(busy, script, { mode: 0o755 });
  onTestFinished(() => rmSync(busy));
  const store = await openStore({ influxdBinary: busy, folder });
  onTestFinished(() => store.close());
  expect([store.failure(), store.version]).toEqual([null, '1.6.7']);
});

it('a new influxd has a user before another program can reach it', async () => {
  const folder = newFolder();
  const binary = join(folder, '..', 'influxd');
  // Records the address of each start.
  const script = `#!/bin/sh\ngrep -A1 '^.http.' influxd.conf >>starts\nexec ${local.influxdBinary} "$@"\n`;
  writeFileSync(binary, script, { mode: 0o755 });
  const store = await openStore({ influxdBinary: binary, folder });
  onTestFinished(() => store.close());
  const addresses = () =>
    [...readFileSync(join(folder, 'starts'), 'utf8').matchAll(/bind-address = "(.*)"/g)].map(
      ([, address]) => address,
    );
  expect(addresses()).toEqual(['224.0.0.1:0', '127.0.0.1:0']);
  const [users] = await store.query('SHOW USERS');
  expect(users?.values).toEqual([['bakeoff', true]]);
  await store.close();
  await (await openStore({ influxdBinary: binary, folder })).close();
  expect(addresses()).toHaveLength(3);
});

it('the password of an interrupted first start is used', async () => {
  const folder = newFolder();
  mkdirSync(folder);
  writeFileSync(join(folder, 'password'), 'kept');
  const store = await open(folder);
  expect(store.influx.credentials?.password).toBe('kept');
  expect(await statusesFor(store)).toEqual(refused);
});

it('a password that does not match the data is a one-line error', async () => {
  const folder = newFolder();
  await (await open(folder)).close();
  const { influxdBinary } = local;
  const wrong = `influxd refuses the password in ${folder}/password (status 401)`;
  writeFileSync(join(folder, 'password'), 'another');
  await expect(openStore({ influxdBinary, folder, purpose: 'view' })).rejects.toThrow(wrong);
  rmSync(join(folder, 'password'));
  await expect(openStore({ influxdBinary, folder, purpose: 'view' })).rejects.toThrow(wrong);
  expect(await lockFile(join(folder, 'influxd.lock'))).not.toBeNull();
});

function commandLine(pid: string) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}
