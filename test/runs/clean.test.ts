// What bakeoff keeps between runs, removed: on folders of the test's own.
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
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
    mkdirSync(join(folder, name), { recursive: true });
    for (const file of inside) writeFileSync(join(folder, name, file), '');
  }
}

interface Cleaned {
  code: unknown;
  out: string;
  error: string;
}

/** @param before as of startCommand */
async function cleanBehind(before: readonly string[], ...flags: string[]): Promise<Cleaned> {
  const run = startCommand(['clean', ...flags], { BAKEOFF_HOME: folder }, before);
  return { code: await run.ended, out: run.stdout(), error: run.stderr() };
}

const clean = (...flags: string[]): Promise<Cleaned> => cleanBehind([], ...flags);

const all = {
  k6: ['lock'],
  tls: ['lock', 'localhost.pem'],
  grafana: ['lock', 'grafana.ini'],
  'grafana/data': ['admin-password', 'grafana.db'],
  influxdb: ['influxd.lock', 'password'],
};

test('what the next run makes again goes, the history only where that is asked for, and nothing of others', async () => {
  keep({ ...all, mine: ['file'] });
  writeFileSync(join(folder, 'k6', 'program'), 'x'.repeat(3e6));
  mkdirSync(join(folder, 'elsewhere'));
  writeFileSync(join(folder, 'elsewhere', 'file'), '');
  symlinkSync(join(folder, 'elsewhere'), join(folder, 'k6', 'link'));
  expect(await clean()).toMatchObject({
    code: 0,
    out: expect.stringMatching(
      /^k6: removed, [34] MB\n[^]*Grafana's data: kept, \d MB; --history removes it too\nInfluxDB's data: kept, \d MB; --history removes it too\n$/,
    ) as string,
  });
  expect(readdirSync(folder).sort()).toEqual(['elsewhere', 'grafana', 'influxdb', 'mine']);
  // A person's dashboards, users and password are in it.
  expect(readdirSync(join(folder, 'grafana'), { recursive: true }).sort()).toEqual([
    'data',
    'data/admin-password',
    'data/grafana.db',
    'grafana.ini',
    'lock',
  ]);
  expect(await clean('--history')).toMatchObject({
    code: 0,
    out: expect.stringMatching(
      /^Grafana's data: removed, \d MB\nInfluxDB's data: removed, \d MB\n$/,
    ) as string,
  });
  expect(readdirSync(folder).sort()).toEqual(['elsewhere', 'mine']);
  expect(existsSync(join(folder, 'elsewhere', 'file'))).toBe(true);
  expect(await clean('--history')).toMatchObject({
    code: 0,
    out: `there is nothing of bakeoff's in ${folder}\n`,
  });
});

test("a folder of the same name that is somebody else's stays", async () => {
  keep({ k6: ['notes'], influxdb: ['password'] });
  expect(await clean('--history')).toMatchObject({
    code: 0,
    out: `there is nothing of bakeoff's in ${folder}\n`,
  });
  expect(readdirSync(folder)).toEqual(['influxdb', 'k6']);
});

test('while a run measures, or the database or Grafana is in use, nothing is removed', async () => {
  keep(all);
  for (const [name, lock, what] of [
    ['influxdb', 'influxd.lock', "InfluxDB's data"],
    ['grafana', 'lock', "Grafana's data"],
  ] as const) {
    const inUse = await lockFile(join(folder, name, lock));
    expect(await clean('--history')).toEqual({
      code: 1,
      out: '',
      error: `${what} in ${join(folder, name)} is in use: end that first\n`,
    });
    closeSync(inUse as number);
  }
  const done = await oneRunAtATime();
  expect(await clean()).toMatchObject({
    code: 1,
    out: '',
    error: expect.stringMatching(/^another run of bakeoff is measuring/) as string,
  });
  done();
  expect(readdirSync(folder).sort()).toEqual(['grafana', 'influxdb', 'k6', 'tls']);
  expect(await clean('--history')).toMatchObject({ code: 0 });
  // Nothing else was in it.
  expect(existsSync(folder)).toBe(false);
});

// Only root may give a file to somebody else.
test.skipIf(process.geteuid?.() !== 0).each([
  ['k6/lock', 0o644, 'k6', 'k6'],
  ['tls', 0o755, 'the certificate', 'tls'],
  ['grafana', 0o700, "Grafana's data", 'grafana'],
  ['influxdb', 0o700, "InfluxDB's data", 'influxdb'],
])('%s of another user is told, and nothing is removed', async (name, mode, what, where) => {
  keep(all);
  chownSync(join(folder, name), 65534, 65534);
  chmodSync(join(folder, name), mode);
  // As anyone else, whom files are closed to.
  const error = `${what} in ${join(folder, where)} is another user's, such as root's after a run with sudo: start clean as that user\n`;
  expect(
    await cleanBehind(
      ['setpriv', '--bounding-set=-dac_override,-dac_read_search', '--'],
      '--history',
    ),
  ).toEqual({ code: 1, out: '', error });
  expect(readdirSync(folder).sort()).toEqual(['grafana', 'influxdb', 'k6', 'tls']);
});
