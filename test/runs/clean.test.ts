// What bakeoff keeps between runs, removed: on folders of the test's own.
import { closeSync, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { lockFile } from '../../lib/lock-file.ts';
import { oneRunAtATime } from '../../lib/machine/one-run.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { startCommand } from '../scenario-run.ts';

let folder = '';
beforeEach(() => {
  folder = newFolder();
});

function keep(files: Readonly<Record<string, readonly string[]>>): void {
  for (const [name, inside] of Object.entries(files)) {
    mkdirSync(join(folder, name));
    for (const file of inside) writeFileSync(join(folder, name, file), '');
  }
}

async function clean(...flags: string[]): Promise<{ code: unknown; out: string; error: string }> {
  const run = startCommand(['clean', ...flags], { BAKEOFF_HOME: folder });
  return { code: await run.ended, out: run.stdout(), error: run.stderr() };
}

const all = { k6: ['lock'], tls: ['lock', 'localhost.pem'], grafana: ['grafana.ini'], influxdb: ['run.lock', 'view.lock', 'influxd.lock', 'password'] };

test('what the next run makes again goes, the history only where that is asked for, and nothing of others', async () => {
  keep({ ...all, mine: ['file'] });
  writeFileSync(join(folder, 'k6', 'program'), 'x'.repeat(3e6));
  mkdirSync(join(folder, 'elsewhere'));
  writeFileSync(join(folder, 'elsewhere', 'file'), '');
  symlinkSync(join(folder, 'elsewhere'), join(folder, 'k6', 'link'));
  expect(await clean()).toMatchObject({ code: 0, out: expect.stringMatching(/^k6: removed, [34] MB\n[^]*InfluxDB's data: kept, \d MB; --history removes it too\n$/) as string });
  expect(readdirSync(folder).sort()).toEqual(['elsewhere', 'influxdb', 'mine']);
  expect(await clean('--history')).toMatchObject({ code: 0, out: expect.stringMatching(/^InfluxDB's data: removed, \d MB\n$/) as string });
  expect(readdirSync(folder).sort()).toEqual(['elsewhere', 'mine']);
  expect(existsSync(join(folder, 'elsewhere', 'file'))).toBe(true);
  expect(await clean('--history')).toMatchObject({ code: 0, out: `there is nothing of bakeoff's in ${folder}\n` });
});

test('a folder of the same name that is somebody else\'s stays', async () => {
  keep({ k6: ['notes'], influxdb: ['run.lock'] });
  expect(await clean('--history')).toMatchObject({ code: 0, out: `there is nothing of bakeoff's in ${folder}\n` });
  expect(readdirSync(folder)).toEqual(['influxdb', 'k6']);
});

test('while a run measures, or the database is in use, nothing is removed', async () => {
  keep(all);
  const inUse = await lockFile(join(folder, 'influxdb', 'view.lock'));
  expect(await clean()).toEqual({ code: 1, out: '', error: `InfluxDB's data in ${join(folder, 'influxdb')} is in use: end that first\n` });
  closeSync(inUse as number);
  const done = await oneRunAtATime();
  expect(await clean()).toMatchObject({ code: 1, out: '', error: expect.stringMatching(/^another run of bakeoff is measuring/) as string });
  done();
  expect(readdirSync(folder).sort()).toEqual(Object.keys(all).sort());
  expect(await clean('--history')).toMatchObject({ code: 0 });
  // Nothing else was in it.
  expect(existsSync(folder)).toBe(false);
});
