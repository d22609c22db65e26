// Removal of files that bakeoff keeps between runs, in temporary folders.
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
import { lockFile, oneRunAtATime } from '../../lib/machine/locks.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { startCommand } from '../scenario-run.ts';

let folder = '';
beforeEach(() => {
  folder = newFolder();
});

const nothing = (): object => ({ code: 0, out: `there is nothing of bakeoff's in ${folder}\n` });

function keep(files: Readonly<Record<string, readonly string[]>>) {
  for (const [name, inside] of Object.entries(files)) {
    mkdirSync(join(folder, name), { recursive: true });
    for (const file of inside) writeFileSync(join(folder, name, file), '');
  }
}

async function cleanBehind(before: readonly string[], ...flags: string[]) {
  const run = startCommand(['clean', ...flags], { BAKEOFF_HOME: folder }, before);
  return { code: await run.ended, out: run.stdout(), error: run.stderr() };
}

const clean = (...flags: string[]) => cleanBehind([], ...flags);

const all = {
  k6: ['lock'],
  tls: ['lock', 'localhost.pem'],
  grafana: ['lock', 'grafana.ini'],
  'grafana/data': ['admin-password', 'grafana.db'],
  influxdb: ['influxd.lock', 'password'],
};

test('deletes reproducible files, the history only on request, and no foreign files', async () => {
  keep({ ...all, mine: ['file'] });
  writeFileSync(join(folder, 'k6', 'program'), 'x'.repeat(3e6));
  mkdirSync(join(folder, 'elsewhere'));
  writeFileSync(join(folder, 'elsewhere', 'file'), '');
  symlinkSync(join(folder, 'elsewhere'), join(folder, 'k6', 'link'));
  expect((await clean()).out).toMatch(
    /^k6: removed, [34] MB\n[^]*Grafana's data: kept, \d MB; --history removes it too\nInfluxDB's data: kept, /,
  );
  expect(readdirSync(folder).sort()).toEqual(['elsewhere', 'grafana', 'influxdb', 'mine']);
  // Contains the user's dashboards, users and password.
  expect(readdirSync(join(folder, 'grafana/data')).sort()).toEqual([
    'admin-password',
    'grafana.db',
  ]);
  expect((await clean('--history')).out).toMatch(
    /^Grafana's data: removed, \d MB\nInfluxDB's data: removed, \d MB\n$/,
  );
  expect(readdirSync(folder).sort()).toEqual(['elsewhere', 'mine']);
  expect(existsSync(join(folder, 'elsewhere', 'file'))).toBe(true);
  expect(await clean('--history')).toMatchObject(nothing());
});

test('a foreign folder with the same name stays', async () => {
  keep({ k6: ['notes'], influxdb: ['password'] });
  expect(await clean('--history')).toMatchObject(nothing());
  expect(readdirSync(folder)).toEqual(['influxdb', 'k6']);
});

test('deletes nothing during a run, or while the database or Grafana is in use', async () => {
  keep(all);
  for (const [name, lock, reason] of [
    ['influxdb', 'influxd.lock', "InfluxDB's data"],
    ['grafana', 'lock', "Grafana's data"],
  ] as const) {
    const inUse = await lockFile(join(folder, name, lock));
    expect(await clean('--history')).toEqual({
      code: 1,
      out: '',
      error: `${reason} in ${join(folder, name)} is in use: end that first\n`,
    });
    closeSync(inUse as number);
  }
  const done = await oneRunAtATime();
  const refused = await clean();
  expect([refused.code, refused.out]).toEqual([1, '']);
  expect(refused.error).toMatch(/^another run of bakeoff is measuring/);
  done();
  expect(readdirSync(folder).sort()).toEqual(['grafana', 'influxdb', 'k6', 'tls']);
  expect(await clean('--history')).toMatchObject({ code: 0 });
  // The folder was otherwise empty.
  expect(existsSync(folder)).toBe(false);
});

// Only root may change the owner of a file.
test.skipIf(process.geteuid?.() !== 0).each([
  ['k6/lock', 0o644],
  ['grafana', 0o755],
])('%s of another user is reported, and nothing is removed', async (name, mode) => {
  keep(all);
  chownSync(join(folder, name), 65534, 65534);
  chmodSync(join(folder, name), mode);
  // As another user without read permission.
  const user = ['setpriv', '--bounding-set=-dac_override,-dac_read_search', '--'];
  const { code, out, error } = await cleanBehind(user, '--history');
  expect([code, out]).toEqual([1, '']);
  expect(error).toMatch(/^cannot use \S+: you may not use it: .*, or start bakeoff as another$/m);
  expect(readdirSync(folder).sort()).toEqual(['grafana', 'influxdb', 'k6', 'tls']);
});
