// The password of the local influxd: who has it, who is refused, and what happens where it or the data has gone.
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { lockFile } from '../../lib/lock-file.ts';
import { startChild } from '../../lib/process.ts';
import { influxdConfig, openStore } from '../../lib/store/store.ts';
import { refused, statusesFor, useLocalStore } from '../fixtures/local-store.ts';

const local = useLocalStore();
const { newFolder, open } = local;

describe('a password', () => {
  it("keeps others from reading, writing and dropping, at each start, and is its owner's alone", async () => {
    const folder = newFolder();
    for (const _start of ['first', 'second']) {
      const store = await open(folder);
      await store.write(['m value=1 1']);
      const right = store.influx.credentials?.password ?? '';
      expect(right).toMatch(/^[\w-]{32}$/);
      expect(readFileSync(join(folder, 'password'), 'utf8')).toBe(right);
      expect([
        statSync(folder).mode & 0o777,
        statSync(join(folder, 'password')).mode & 0o777,
      ]).toEqual([0o700, 0o600]);
      for (const tried of [
        {},
        { Authorization: `Basic ${btoa('bakeoff:wrong')}` },
        { Authorization: `Basic ${btoa(`admin:${right}`)}` },
        { Authorization: `Token ${right}` },
      ]) {
        expect(await statusesFor(store, tried)).toEqual(refused);
      }
      expect(await store.query('SHOW USERS')).toMatchObject([{ values: [['bakeoff', true]] }]);
      expect((await store.query('SELECT value FROM m'))[0]?.values).toEqual([
        ['1970-01-01T00:00:00.000000001Z', 1],
      ]);
      for (const file of readdirSync('/proc').filter((name) => /^\d+$/.test(name)))
        expect(commandLine(file)).not.toContain(right);
      expect(store.k6Output()).toMatchObject({
        env: { K6_INFLUXDB_USERNAME: 'bakeoff', K6_INFLUXDB_PASSWORD: right },
      });
      expect(store.k6Output().out.join()).not.toContain(right);
      await store.close();
    }
  });

  it('is one for a run and what looks, whichever opens first', async () => {
    const folder = newFolder();
    const stores = await Promise.all(
      (['view', 'run'] as const).map((purpose) =>
        openStore({ influxdBinary: local.influxdBinary, folder, purpose }),
      ),
    );
    // What looks waits for the run's end.
    onTestFinished(async () => {
      await Promise.all(stores.map((store) => store.close()));
    });
    expect(new Set(stores.map(({ influx }) => JSON.stringify(influx))).size).toBe(1);
    for (const store of stores)
      expect(await store.query('SHOW USERS')).toMatchObject([{ values: [['bakeoff', true]] }]);
  });

  it('comes to a database of before there were any, whose history is kept', async () => {
    const folder = newFolder();
    await (await open(folder)).close();
    await withoutPassword(folder, async (url) => {
      const { status, statusText } = await fetch(`${url}/write?db=bakeoff`, {
        method: 'POST',
        body: 'm value=1 1',
      });
      expect([status, statusText]).toEqual([204, 'No Content']);
    });
    const store = await open(folder);
    expect((await store.query('SELECT value FROM m'))[0]?.values).toHaveLength(1);
    expect(await statusesFor(store, {})).toEqual(refused);
  });

  it('is that of a start that was cut short before influxd knew it', async () => {
    const folder = newFolder();
    mkdirSync(folder);
    writeFileSync(join(folder, 'password'), 'kept');
    const store = await open(folder);
    expect(store.influx.credentials?.password).toBe('kept');
    expect(await statusesFor(store, {})).toEqual(refused);
  });

  it("is asked for again when influxd's data has gone: nobody else can make the first user", async () => {
    const folder = newFolder();
    await (await open(folder)).close();
    for (const name of ['meta', 'data', 'wal'])
      rmSync(join(folder, name), { recursive: true, force: true });
    expect(await statusesFor(await open(folder), {})).toEqual(refused);
  });

  it('that does not go with the data is said in a line, and nothing is left running', async () => {
    const folder = newFolder();
    await (await open(folder)).close();
    const wrong = `influxd does not take the password in ${folder}/password (status 401): put back the one that its data was made with, or move ${folder} away to begin anew`;
    writeFileSync(join(folder, 'password'), 'another');
    await expect(openStore({ influxdBinary: local.influxdBinary, folder })).rejects.toThrow(wrong);
    rmSync(join(folder, 'password'));
    await expect(openStore({ influxdBinary: local.influxdBinary, folder })).rejects.toThrow(wrong);
    expect(await lockFile(join(folder, 'influxd.lock'))).not.toBeNull();
  });

  it('of somebody else, who made a user in the moment before, lets nobody in: bakeoff does not use that influxd', async () => {
    const folder = newFolder();
    await (await open(folder)).close();
    await withoutPassword(folder, async (url) => {
      const made = await fetch(
        `${url}/query?${new URLSearchParams({ q: "CREATE USER me WITH PASSWORD 'mine' WITH ALL PRIVILEGES" })}`,
        { method: 'POST' },
      );
      expect(await made.json()).toEqual({ results: [{ statement_id: 0 }] });
    });
    await expect(openStore({ influxdBinary: local.influxdBinary, folder })).rejects.toThrow(
      'influxd does not take the password in',
    );
  });
});

/** Runs influxd on the data of a folder as it was done before there were passwords: with neither user nor password. */
async function withoutPassword(folder: string, use: (url: string) => Promise<void>): Promise<void> {
  for (const name of ['password', 'meta', 'data', 'wal'])
    rmSync(join(folder, name), { recursive: true, force: true });
  const config = influxdConfig(folder, '127.0.0.1:0').replace(
    'auth-enabled = true',
    'auth-enabled = false',
  );
  writeFileSync(join(folder, 'old.conf'), config);
  const log = openSync(join(folder, 'influxd.log'), 'w');
  const influxd = await startChild({
    command: local.influxdBinary,
    args: ['run', '-config', join(folder, 'old.conf')],
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  onTestFinished(() => influxd.stop());
  const url = await vi.waitFor(
    async () => {
      const address = /Listening on HTTP".* addr=(\S+)/.exec(
        readFileSync(join(folder, 'influxd.log'), 'utf8'),
      )?.[1];
      const made = await fetch(
        `http://${address}/query?${new URLSearchParams({ q: 'CREATE DATABASE bakeoff' })}`,
        { method: 'POST' },
      );
      expect(await made.json()).toEqual({ results: [{ statement_id: 0 }] });
      return `http://${address}`;
    },
    { timeout: 20_000 },
  );
  await use(url);
  await influxd.stop();
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}
