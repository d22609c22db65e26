// Programs, packages and folders that other users may change are not used.
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it, onTestFinished, test, vi } from 'vitest';
import { foldersOf, helper, onPath, whoMayChange } from '../../bin/trust.mjs';
import { run } from '../../lib/process.ts';
import { makeOwnFolder, makePrivateFolder } from '../../lib/files.ts';
import {
  findGo,
  goCompiler,
  goEnvironment,
  hashOfSources,
  k6Package,
  k6Path,
  lookForK6,
  sourcesFile,
} from '../../lib/setup/k6.ts';
import { find, leftOutOfPath, thisMachine, useSafePath } from '../../lib/setup/machine.ts';
import { openScope } from '../../lib/servers/scope.ts';
import { bakeoffFolder, projectRoot, requireOwnHome } from '../../lib/setup/paths.ts';
import { source, testMachine } from '../fixtures/machine.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { start } from '../fixtures/node-process.ts';
import { isRunning, stopWhole } from '../fixtures/processes.ts';
import { plantedIn } from '../fixtures/planted.ts';

afterEach(() => void vi.unstubAllEnvs());

const asRoot = it.runIf(process.geteuid?.() === 0);
const stranger = 12_345;

/** A copy of trust.mjs, since the checkout may be closed to other users. */
function readableTrust(folder: string): string {
  const copy = join(folder, 'trust.mjs');
  cpSync(join(projectRoot, 'bin/trust.mjs'), copy);
  return copy;
}

/** Lets a user write to a folder by an access control list, as setfacl(1) does. */
function grantTo(user: number, folder: string): void {
  // Version 2, and entries of tag, permissions and id: owner, this user, group, mask, others. See acl(5) and the kernel's posix_acl_xattr.h.
  const script = `
import os, struct, sys
nobody = 0xffffffff
entries = [(1, 7, nobody), (2, 7, int(sys.argv[2])), (4, 5, nobody), (16, 7, nobody), (32, 5, nobody)]
os.setxattr(sys.argv[1], 'system.posix_acl_access', struct.pack('<I', 2) + b''.join(struct.pack('<HHI', *entry) for entry in entries))`;
  execFileSync('python3', ['-c', script, folder, String(user)]);
}

describe('PATH', () => {
  asRoot('keeps the folders that nobody else may change', () => {
    const folder = newFolder();
    const ownedBy = (name: string, uid: number, mode: number) => {
      const path = join(folder, name);
      mkdirSync(path);
      chownSync(path, uid, uid);
      chmodSync(path, mode);
      return path;
    };
    const own = ownedBy('own', 0, 0o755);
    const strangers = ownedBy('strangers', stranger, 0o755);
    const open = ownedBy('open', 0, 0o777);
    const group = ownedBy('group', 0, 0o775);
    chownSync(group, 0, stranger);
    const ownGroup = ownedBy('own-group', 0, 0o775);
    const listed = ownedBy('listed', 0, 0o755);
    grantTo(stranger, listed);
    expect(whoMayChange(listed)).toBe(`others may write to ${listed} by its access control list`);
    const missing = join(own, 'missing');
    const madeByOthers = join(ownedBy('sticky', 0, 0o1777), 'missing');
    const circle = join(folder, 'circle');
    symlinkSync(circle, circle);
    const link = join(folder, 'link');
    symlinkSync(strangers, link);
    const below = join(open, 'below');
    mkdirSync(below);
    const leftOut = [strangers, open, group, listed, madeByOthers, circle, link, below];
    expect(
      foldersOf([own, ownGroup, missing, ...leftOut, '', 'node_modules/.bin', '.'].join(':')),
    ).toEqual({
      kept: [own, ownGroup, missing],
      leftOut,
    });
  });

  asRoot('has no program that somebody else may change', async () => {
    const machine = testMachine();
    const folder = newFolder();
    plantedIn(folder, 'nginx');
    const path = join(folder, 'nginx');
    vi.stubEnv('PATH', folder);
    machine.env = { ...machine.env, PATH: folder };
    expect([await find('nginx', machine), await leftOutOfPath('nginx')]).toEqual([path, '']);
    chownSync(path, stranger, stranger);
    expect(await find('nginx', machine)).toBeUndefined();
    expect(await leftOutOfPath('nginx')).toBe(
      ` (${path} is not used: ${path} belongs to user ${stranger})`,
    );
    chownSync(path, 0, 0);
    chmodSync(path, 0o777);
    expect([await find('nginx', machine), onPath('nginx')]).toEqual([undefined, undefined]);
  });

  asRoot('has in a user namespace no folder that another user has put into /tmp', () => {
    const folder = newFolder();
    chmodSync(folder, 0o1777);
    const planted = join(folder, 'planted');
    mkdirSync(planted);
    chownSync(planted, stranger, stranger);
    const trust = readableTrust(folder);
    const script = `import(${JSON.stringify(trust)}).then(({ foldersOf }) => console.log(JSON.stringify(foldersOf(process.argv[1]))))`;
    const asUser = ['--reuid=4242', '--regid=4242', '--clear-groups', '--', 'unshare'];
    const asking = ['--map-root-user', process.execPath, '-e', script, `/usr/bin:${planted}`];
    const { stdout } = spawnSync('setpriv', [...asUser, ...asking], { encoding: 'utf8' });
    expect(JSON.parse(stdout)).toEqual({ kept: ['/usr/bin'], leftOut: [planted] });
  });

  asRoot('keeps what the caller of sudo may change', () => {
    const folder = newFolder();
    chownSync(folder, stranger, 0);
    const script = `import(${JSON.stringify(join(projectRoot, 'bin/trust.mjs'))}).then((trust) => console.log(trust.foldersOf(process.argv[1]).kept.length))`;
    const kept = (env: NodeJS.ProcessEnv) =>
      execFileSync(process.execPath, ['-e', script, folder], {
        env: { ...process.env, ...env },
        encoding: 'utf8',
      });
    expect(kept({})).toBe('0\n');
    expect(kept({ SUDO_UID: String(stranger) })).toBe('1\n');
  });

  asRoot('is not searched for what tries a control group', async () => {
    const folder = newFolder();
    const wasRun = plantedIn(folder, 'true');
    vi.stubEnv('PATH', folder);
    const scope = await openScope(newFolder());
    await scope.end();
    expect(wasRun()).toBe(false);
  });

  asRoot("has no helper of another user's", async () => {
    const folder = newFolder();
    const wasRun = plantedIn(folder, 'setpriv', 'taskset', 'sh', 'flock', 'renice');
    chownSync(folder, stranger, stranger);
    vi.stubEnv('PATH', `:${folder}:${process.env['PATH']}`);
    onTestFinished(() => void vi.unstubAllEnvs());
    const { code } = await run({ command: 'sh', args: ['-c', ':'], cwd: folder, cpus: [0] });
    expect(code).toBe(0);
    expect(helper('renice')).not.toContain(folder);
    expect(
      spawnSync(process.execPath, [join(projectRoot, 'bin/bakeoff.mjs'), '--version']).status,
    ).toBe(0);
    expect(wasRun()).toBe(false);
  });
});

test('programs are started in one place, and none by its name', () => {
  const starters = ['lib', 'bin', 'packaging'].flatMap((folder) =>
    readdirSync(join(projectRoot, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /(?<!\.test)\.(?:ts|mjs|js)$/.test(name))
      .map((name) => [join(folder, name), readFileSync(join(projectRoot, folder, name), 'utf8')])
      .filter(([, text]) => /import \{[^}]*\} from 'node:child_process'/.test(text ?? '')),
  ) as [string, string][];
  expect(starters.map(([name]) => name).sort()).toEqual([
    'bin/bakeoff.mjs',
    'bin/packages.mjs',
    'bin/prepare.mjs',
    'bin/trust.mjs',
    'lib/process.ts',
    'packaging/contents.ts',
    'packaging/publish-as.ts',
  ]);
  const byName = /\b(?:spawn|spawnSync|exec|execSync|execFile|execFileSync)\)?\(\s*['"`]/;
  for (const [name, text] of starters) expect(text, name).not.toMatch(byName);
});

asRoot('a user enters the folder of its process, not root for it', async () => {
  const folder = newFolder();
  chmodSync(folder, 0o755);
  for (const [name, mode] of [
    ['open', 0o755],
    ['closed', 0o700],
  ] as const) {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, 'file'), '');
    chmodSync(join(folder, name), mode);
  }
  symlinkSync('closed', join(folder, 'link'));
  const user = { uid: stranger, gid: stranger };
  const ls = (name: string) => run({ command: 'ls', args: [], cwd: join(folder, name), user });
  expect(await ls('open')).toMatchObject({ code: 0, stdout: 'file\n' });
  const { code, stdout } = await ls('link');
  expect([code === 0, stdout]).toEqual([false, '']);
});

describe('k6', () => {
  async function kept() {
    const machine = testMachine();
    source(machine, 'go.mod', 'module tiny\n\ngo 1.21\n');
    const go = join(machine.binFolder, 'go');
    writeFileSync(go, `#!/bin/sh\nprintf 'go1.26\\namd64\\n\\n\\n'\n`, { mode: 0o755 });
    const path = await k6Path(machine, { version: 'go1.26', architecture: 'amd64' });
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, '#!/bin/sh\n', { mode: 0o755 });
    writeFileSync(join(path, '../sizes.json'), '{"k6":10}');
    return { machine, path };
  }

  asRoot('and other Go programs are not compiled with caches of others', async () => {
    const machine = testMachine();
    source(machine, 'go.mod', 'module tiny\n\ngo 1.21\n');
    const cache = newFolder();
    const go = join(machine.binFolder, 'go');
    writeFileSync(go, `#!/bin/sh\nprintf 'go1.26\\namd64\\n${cache}\\n\\n'\n`, { mode: 0o755 });
    expect(await goCompiler(machine)).toBe(go);
    chmodSync(cache, 0o1777);
    await expect(goCompiler(machine)).rejects.toThrow(
      `others may put compiled code of theirs into ${cache}: others may write to ${cache}; name folders of your own in GOCACHE and GOMODCACHE`,
    );
  });

  asRoot('of another user is not run', async () => {
    const { machine, path } = await kept();
    expect(await lookForK6(machine)).toEqual({ path });
    chownSync(path, stranger, stranger);
    await expect(lookForK6(machine)).rejects.toThrow(
      `others may put a k6 of theirs into ${path}: ${path} belongs to user 12345; name folders of your own in BAKEOFF_HOME`,
    );
    chownSync(path, 0, 0);
    const delaylink = join(dirname(path), 'delaylink');
    writeFileSync(delaylink, '', { mode: 0o755 });
    chmodSync(delaylink, 0o777);
    await expect(lookForK6(machine)).rejects.toThrow(`every user may write to ${delaylink}`);
  });

  test('in an open folder is not run', async () => {
    const { machine, path } = await kept();
    chmodSync(machine.bakeoffFolder, 0o777);
    await expect(lookForK6(machine)).rejects.toThrow(
      `${path}: every user may write to ${machine.bakeoffFolder}; name`,
    );
  });

  asRoot("is not built where another user's folder stands", () => {
    const home = newFolder();
    chmodSync(home, 0o1777);
    const folder = join(home, 'k6');
    mkdirSync(folder);
    chownSync(folder, stranger, stranger);
    expect(() => makeOwnFolder(folder)).toThrow(
      `root keeps nothing in ${folder}: ${folder} belongs to user 12345; remove it, or name another folder in BAKEOFF_HOME`,
    );
    expect(() => makePrivateFolder(home)).toThrow(`others may write to ${home}`);
    makeOwnFolder(join(home, 'tls'));
  });

  asRoot("is built without Go's settings of another user", () => {
    const home = newFolder();
    chmodSync(home, 0o1777);
    // Somebody else may make them.
    expect(goEnvironment({ HOME: home })).toMatchObject({ GOENV: 'off' });
    mkdirSync(join(home, '.config'));
    expect(goEnvironment({ HOME: home })).not.toHaveProperty('GOENV');
    chownSync(join(home, '.config'), stranger, stranger);
    expect(goEnvironment({ HOME: home })).toMatchObject({ GOENV: 'off' });
  });

  asRoot('of a package of another user is not run', async () => {
    const { machine, path } = await kept();
    const folder = join(machine.folder, 'node_modules', k6Package(process.arch));
    mkdirSync(folder, { recursive: true });
    cpSync(process.execPath, join(folder, 'k6'));
    writeFileSync(join(folder, sourcesFile), await hashOfSources(machine.k6Sources));
    const { length } = readFileSync(process.execPath);
    writeFileSync(join(folder, 'sizes.json'), JSON.stringify({ k6: length }));
    expect(await lookForK6(machine)).toEqual({ path: join(folder, 'k6') });
    chownSync(join(folder, 'k6'), stranger, stranger);
    expect(await lookForK6(machine)).toEqual({ path });
    expect(machine.printed()).toMatch(/may be changed by others \(\S+ belongs to user 12345\)/);
  });

  test('of a package is not looked for in the folders above a checkout', () => {
    expect(thisMachine().packageFolders).toEqual([]);
  });
});

asRoot('programs of root get no HOME into which others may put files', () => {
  const home = newFolder();
  const mask = process.umask();
  onTestFinished(() => void process.umask(mask));
  for (const name of ['HOME', 'XDG_CONFIG_HOME', 'XDG_CACHE_HOME']) vi.stubEnv(name, home);
  const homes = () => {
    requireOwnHome();
    const { HOME, XDG_CONFIG_HOME, XDG_CACHE_HOME } = process.env;
    return [HOME, XDG_CONFIG_HOME, XDG_CACHE_HOME];
  };
  expect(homes()).toEqual([home, home, home]);
  chmodSync(home, 0o1777);
  expect(homes()).toEqual([bakeoffFolder, undefined, undefined]);
});

asRoot.each([
  [stranger, ''],
  [stranger + 1, `the members of group ${stranger + 1} may write to `],
])(
  "a user's group that is listed nowhere is theirs if it has their number: %i",
  (group, problem) => {
    const folder = newFolder();
    chownSync(folder, stranger, group);
    chmodSync(folder, 0o775);
    const script = `import { whoMayChange } from ${JSON.stringify(readableTrust(folder))}; console.log(whoMayChange(process.argv[1]))`;
    const node = [process.execPath, '--input-type=module', '-e', script, folder];
    const becomes = [`--reuid=${stranger}`, `--regid=${group}`, '--clear-groups', '--'];
    const { stdout } = spawnSync(helper('setpriv'), [...becomes, ...node], { encoding: 'utf8' });
    expect(stdout).toBe(problem === '' ? 'undefined\n' : `${problem}${folder}\n`);
  },
);

test('a stopped process ends with a killed bakeoff', async () => {
  const script = `
    import { startChild } from './lib/process.ts';
    const child = await startChild({ command: 'sleep', args: ['60'], stdio: 'ignore' });
    console.log(child.pid);
    setTimeout(() => {}, 60_000);`;
  const runner = start(['--import', 'tsx', '--input-type=module', '-e', script], process.env);
  const pid = await vi.waitFor(
    () => Number(/^\d+\n$/.exec(runner.stdout())?.[0] ?? expect.fail()),
    20_000,
  );
  await stopWhole(pid);
  runner.process.kill('SIGKILL');
  await vi.waitFor(() => expect(isRunning(pid)).toBe(false), 10_000);
});

test('libraries are looked for where the caller means, and not in the folder of a child', () => {
  vi.stubEnv('INIT_CWD', projectRoot);
  vi.stubEnv('LD_LIBRARY_PATH', '/usr/lib::lib');
  vi.stubEnv('LD_PRELOAD', './own.so named.so');
  vi.stubEnv('OPENSSL_CONF', 'own.cnf');
  useSafePath();
  expect(process.env).toMatchObject({
    LD_LIBRARY_PATH: `/usr/lib:${join(projectRoot, 'lib')}`,
    LD_PRELOAD: `${join(projectRoot, 'own.so')}:named.so`,
    OPENSSL_CONF: join(projectRoot, 'own.cnf'),
  });
});

asRoot('root takes no libraries from folders of others', () => {
  const open = newFolder();
  chmodSync(open, 0o777);
  const circle = join(newFolder(), 'circle');
  symlinkSync(circle, circle);
  vi.stubEnv('LD_LIBRARY_PATH', `${open}:${circle}:/usr/lib`);
  useSafePath();
  expect(process.env['LD_LIBRARY_PATH']).toBe('/usr/lib');
});

test('a helper starts in /, where nobody else puts libraries', async () => {
  expect((await run({ command: 'sh', args: ['-c', 'pwd'] })).stdout).toBe('/\n');
});

asRoot("leaves what Go writes in the home of sudo's caller to the caller", async () => {
  const home = newFolder();
  chownSync(home, stranger, stranger);
  for (const name of ['SUDO_UID', 'SUDO_GID']) vi.stubEnv(name, String(stranger));
  const env = { ...process.env, HOME: home };
  await findGo({ ...thisMachine(), env });
  const written = readdirSync(home, { recursive: true, encoding: 'utf8' });
  expect(written).toContain('.config/go/telemetry');
  for (const name of written)
    expect([name, lstatSync(join(home, name)).uid]).toEqual([name, stranger]);
});
