import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { makeScratch, nameOfProcess, removeFolder } from '../../lib/servers/scratch.ts';
import { newFolder } from '../fixtures/new-folder.ts';

const isRoot = process.getuid?.() === 0;
/** Above what Linux gives (pid_max is 4,194,304 at most). */
const deadServer = nameOfProcess('bakeoff-server-', 99_999_999);

/** The system's temporary folder of one test. */
function temporary(mode = 0o1777): string {
  const folder = newFolder();
  chmodSync(folder, mode);
  vi.stubEnv('TMPDIR', folder);
  onTestFinished(() => void vi.unstubAllEnvs());
  return folder;
}

/** A folder with a file in it, named as what a killed process left. */
function leftOver(folder: string, name: string, mode = 0o711): string {
  const path = join(folder, `${deadServer}${name}`);
  mkdirSync(join(path, 'temp'), { recursive: true });
  writeFileSync(join(path, 'temp/file'), 'x');
  chmodSync(path, mode);
  return path;
}

async function start(): Promise<void> {
  (await makeScratch()).remove();
}

it('removes what killed processes of this user left, and what they had linked to stays', async () => {
  const folder = temporary();
  const kept = join(folder, 'kept');
  mkdirSync(kept);
  writeFileSync(join(kept, 'precious'), 'x');
  const [closed, open] = [leftOver(folder, 'a', 0o700), leftOver(folder, 'b')];
  symlinkSync(kept, join(open, 'temp/link'));
  await start();
  expect([closed, open].filter(existsSync)).toEqual([]);
  expect(readFileSync(join(kept, 'precious'), 'utf8')).toBe('x');
});

it('leaves what a process of another namespace has made, whose number says nothing here', async () => {
  const folder = temporary();
  const another = join(folder, 'bakeoff-server-1-99999999-a');
  mkdirSync(another, { mode: 0o700 });
  await start();
  expect(existsSync(another)).toBe(true);
});

it('leaves links, files, and folders that are not as it makes them', async () => {
  const folder = temporary();
  const elsewhere = join(folder, 'elsewhere');
  mkdirSync(elsewhere, { mode: 0o700 });
  writeFileSync(join(elsewhere, 'precious'), 'x');
  const link = join(folder, `${deadServer}link`);
  symlinkSync(elsewhere, link);
  const file = join(folder, `${deadServer}file`);
  writeFileSync(file, 'x');
  const shared = leftOver(folder, 'shared', 0o777);
  await start();
  expect(lstatSync(link).isSymbolicLink()).toBe(true);
  expect(
    [join(elsewhere, 'precious'), file, join(shared, 'temp/file')].filter(
      (path) => !existsSync(path),
    ),
  ).toEqual([]);
});

it.runIf(isRoot)("leaves another user's folder", async () => {
  const folder = temporary();
  const other = leftOver(folder, 'other', 0o700);
  chownSync(other, 65_534, 65_534);
  await start();
  expect(existsSync(join(other, 'temp/file'))).toBe(true);
});

it('leaves all where anyone may rename what is there', async () => {
  const other = leftOver(temporary(0o777), 'renamed');
  await start();
  expect(existsSync(join(other, 'temp/file'))).toBe(true);
});

it('removes what was opened, and nothing that has taken its name since', () => {
  const folder = temporary();
  const [path, elsewhere] = [join(folder, 'scratch'), join(folder, 'elsewhere')];
  for (const one of [path, elsewhere]) {
    mkdirSync(one);
    writeFileSync(join(one, 'file'), 'x');
  }
  const swap = (): boolean => {
    rmSync(path, { recursive: true });
    symlinkSync(elsewhere, path);
    return true;
  };
  expect(() => removeFolder(path, swap)).toThrow();
  expect(() => removeFolder(path)).toThrow();
  expect(readdirSync(elsewhere)).toEqual(['file']);
});

it.runIf(isRoot)(
  'is closed to others until it is given to a user, who gets no more than what is for it',
  async () => {
    const folder = temporary();
    const key = join(folder, 'own.key');
    writeFileSync(key, 'secret', { mode: 0o600 });
    writeFileSync(join(folder, 'open.pem'), 'open', { mode: 0o644 });
    const scratch = await makeScratch();
    onTestFinished(scratch.remove);
    const config = scratch.keep('/results/nginx.conf', 'text');
    const copy = scratch.handOver(key, folder);
    expect(scratch.handOver(key)).toBe(copy);
    expect(readFileSync(copy, 'utf8')).toBe('secret');
    expect(scratch.withOwnPaths(`${copy} and ${config}:3`)).toBe(
      `${key} and /results/nginx.conf:3`,
    );
    const top = join(scratch.temp, '..');
    expect(statSync(top).mode & 0o777).toBe(0o700);
    scratch.giveTo({ name: 'nobody', uid: 65_534, gid: 65_534 });
    const rights = (path: string): unknown[] => [statSync(path).uid, statSync(path).mode & 0o777];
    expect([top, join(copy, '..'), scratch.temp, copy, config].map(rights)).toEqual([
      [0, 0o711],
      [0, 0o711],
      [65_534, 0o700],
      [65_534, 0o400],
      [65_534, 0o400],
    ]);
    scratch.forget();
    expect(existsSync(copy)).toBe(false);
    scratch.remove();
    expect(readdirSync(folder).filter((name) => name.startsWith('bakeoff-server-'))).toEqual([]);
  },
);

it.runIf(isRoot)(
  "hands over what is a server's to read: keys, and what is beside the config",
  async () => {
    const folder = temporary();
    const scratch = await makeScratch();
    onTestFinished(scratch.remove);
    const own = join(folder, 'config');
    mkdirSync(own);
    const files = {
      'key.pem': 'comment\n-----BEGIN RSA PRIVATE KEY-----\n',
      id_rsa: '-----BEGIN OPENSSH PRIVATE KEY-----\n',
      shadow: 'root:x:0',
      'config/password': 'x',
    };
    for (const [name, text] of Object.entries(files))
      writeFileSync(join(folder, name), text, { mode: 0o600 });
    symlinkSync(join(folder, 'shadow'), join(own, 'link'));
    const isCopied = (name: string): boolean =>
      scratch.handOver(join(folder, name), own) !== join(folder, name);
    expect([...Object.keys(files), 'config/link'].filter(isCopied)).toEqual([
      'key.pem',
      'config/password',
    ]);
  },
);

it.runIf(isRoot)("takes the folder of all where root's own is closed to others", async () => {
  const folder = temporary(0o700);
  const scratch = await makeScratch();
  onTestFinished(scratch.remove);
  expect(scratch.temp.startsWith('/tmp/bakeoff-server-')).toBe(true);
  expect(readdirSync(folder)).toEqual([]);
});
