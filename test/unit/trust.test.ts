// Programs, packages and folders that other users may change are not used.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { once } from 'node:events';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it, onTestFinished, test, vi } from 'vitest';
import { foldersOf, helper, onPath, refusalForRoot, whoMayChange } from '../../bin/trust.mjs';
import { run } from '../../lib/process.ts';
import { makeOwnFolder, makePrivateFolder } from '../../lib/files.ts';
import {
  goCompiler,
  goEnvironment,
  hashOfSources,
  k6Package,
  k6Path,
  lookForK6,
  sourcesFile,
} from '../../lib/setup/k6.ts';
import { find, leftOutOfPath, thisMachine } from '../../lib/setup/machine.ts';
import { bundledForK6 } from '../../lib/runner/k6.ts';
import { openScope } from '../../lib/servers/scope.ts';
import { bakeoffFolder, projectRoot, requireOwnHome } from '../../lib/setup/paths.ts';
import { source, testMachine } from '../fixtures/machine.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { start } from '../fixtures/node-process.ts';
import { isRunning, stopWhole } from '../fixtures/processes.ts';

const asRoot = it.runIf(process.geteuid?.() === 0);
const stranger = 12_345;

/** A folder of programs that leave a mark when they run. */
function plantedIn(folder: string, ...names: readonly string[]): () => boolean {
  const mark = join(folder, 'mark');
  mkdirSync(folder, { recursive: true });
  for (const name of names)
    writeFileSync(join(folder, name), `#!/bin/sh\necho x >>${mark}\n`, { mode: 0o755 });
  return () => existsSync(mark);
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
    // The mode of a folder with an access control list is like this.
    const roots = ownedBy('roots', 0, 0o775);
    expect(whoMayChange(roots)).toBe(
      `members of group 0, or of its access control list, may write to ${roots}`,
    );
    const missing = join(own, 'missing');
    const madeByOthers = join(ownedBy('sticky', 0, 0o1777), 'missing');
    const circle = join(folder, 'circle');
    symlinkSync(circle, circle);
    const link = join(folder, 'link');
    symlinkSync(strangers, link);
    const below = join(open, 'below');
    mkdirSync(below);
    const leftOut = [strangers, open, group, roots, madeByOthers, circle, link, below];
    expect(foldersOf([own, missing, ...leftOut, '', 'node_modules/.bin', '.'].join(':'))).toEqual({
      kept: [own, missing],
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
    const script = `import(${JSON.stringify(join(projectRoot, 'bin/trust.mjs'))}).then(({ foldersOf }) => console.log(JSON.stringify(foldersOf(process.argv[1]))))`;
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

describe('a checkout', () => {
  /** A copy of what starts first, in a folder of its own. */
  function checkout() {
    const above = newFolder();
    const root = join(above, 'bakeoff');
    cpSync(join(projectRoot, 'bin'), join(root, 'bin'), { recursive: true });
    cpSync(join(projectRoot, 'package-lock.json'), join(root, 'package-lock.json'));
    const command = [join(root, 'bin/bakeoff.mjs'), '--no-install', '--version'];
    const says = (env: NodeJS.ProcessEnv = {}) =>
      spawnSync(process.execPath, command, { encoding: 'utf8', env: { ...process.env, ...env } })
        .stderr;
    return { above, root, says };
  }

  const isAccepted = expect.stringMatching(/^the Node packages of package-lock\.json are not all/);

  asRoot('below an open folder is not used by root', () => {
    const { above, root, says } = checkout();
    expect(says()).toEqual(isAccepted);
    chmodSync(above, 0o777);
    expect(says()).toBe(
      `root does not run bakeoff in ${root}: every user may write to ${above}, and could so become root; move bakeoff, or close what is named (chown root, chmod go-w), or start it as another user\n`,
    );
    chmodSync(above, 0o1777);
    expect(says()).toEqual(isAccepted);
    mkdirSync(join(root, 'lib'));
    chmodSync(join(root, 'lib'), 0o777);
    expect(says()).toMatch(/^root does not .*: every user may write to \S+\/lib, .*\n$/);
    chmodSync(join(root, 'lib'), 0o755);
    mkdirSync(join(root, '.git'));
    writeFileSync(join(root, '.git/config'), '');
    chmodSync(join(root, '.git/config'), 0o666);
    expect(says()).toMatch(/^root does not .*: every user may write to \S+\/\.git\/config, .*\n$/);
    rmSync(join(root, '.git'), { recursive: true });
    chownSync(join(root, 'bin'), stranger, stranger);
    expect(says()).toMatch(/^root does not .*: \S+\/bin belongs to user 12345, .*\n$/);
    expect(says({ SUDO_UID: String(stranger) })).toEqual(isAccepted);
  });

  asRoot(
    'as a dependency is not used by root if a package that it loads is of another user',
    () => {
      const packages = join(newFolder(), 'node_modules');
      const installed = join(packages, 'server-bakeoff');
      cpSync(join(projectRoot, 'bin'), join(installed, 'bin'), { recursive: true });
      const made = (name: string, ...dependencies: string[]) => {
        const folder = join(packages, name);
        mkdirSync(folder, { recursive: true });
        const versions = Object.fromEntries(dependencies.map((dependency) => [dependency, '1']));
        writeFileSync(join(folder, 'package.json'), JSON.stringify({ dependencies: versions }));
        return folder;
      };
      made('server-bakeoff', 'first', 'not-there');
      made('first', '@scope/second', 'server-bakeoff');
      const second = made('@scope/second');
      const folder = join(second, 'bin');
      mkdirSync(folder);
      chownSync(made('of-the-project'), stranger, stranger);
      const says = () =>
        spawnSync(process.execPath, [join(installed, 'bin/bakeoff.mjs')], { encoding: 'utf8' })
          .stderr;
      expect(says()).toMatch(/^bakeoff was installed without the script/);
      chownSync(folder, stranger, stranger);
      expect(says()).toBe(
        `root does not run bakeoff in ${installed}: ${folder} belongs to user ${stranger}, and could so become root; install server-bakeoff as root, in a folder of its own (npm install), or start it as another user\n`,
      );
      chownSync(folder, 0, 0);
      rmSync(second, { recursive: true });
      const elsewhere = newFolder();
      chmodSync(elsewhere, 0o777);
      symlinkSync(elsewhere, second);
      expect(says()).toContain(`: every user may write to ${elsewhere}, `);
    },
  );

  asRoot("gets its packages without npm's settings and files of others", () => {
    const { root } = checkout();
    const folder = newFolder();
    const words = join(folder, 'words');
    writeFileSync(
      join(folder, 'npm'),
      `#!/bin/sh\necho "$NODE_DISABLE_COMPILE_CACHE $*" >${words}\nexit 1\n`,
      { mode: 0o755 },
    );
    const home = newFolder();
    const env = {
      ...process.env,
      HOME: home,
      PATH: `${folder}:${process.env['PATH']}`,
      npm_config_userconfig: '',
    };
    const npmGets = () => {
      const { stderr } = spawnSync(process.execPath, [join(root, 'bin/packages.mjs')], {
        encoding: 'utf8',
        env,
      });
      expect(stderr).toContain('npm ended without a message');
      return readFileSync(words, 'utf8');
    };
    const usual = npmGets();
    expect(usual).toMatch(/^1 ci --include=dev .* --prefix=\S+\n$/);
    chmodSync(home, 0o1777);
    const more = ` --userconfig=/dev/null --cache=${root}/.bakeoff/npm\n`;
    expect(npmGets()).toBe(usual.replace('\n', more));
    writeFileSync(join(home, '.npmrc'), '');
    expect(npmGets()).toBe(usual);
    chownSync(join(home, '.npmrc'), stranger, stranger);
    expect(npmGets()).toBe(usual.replace('\n', more));
  });

  it('that another process has locked says so, and gives up', async () => {
    const { root } = checkout();
    const script = `import { installPackages } from ${JSON.stringify(join(root, 'bin/packages.mjs'))}; console.log(await installPackages(false, 0.1))`;
    const holder = spawn('flock', ['--exclusive', root, 'sh', '-c', 'echo locked; read -r end']);
    onTestFinished(() => void holder.stdin.end());
    await once(holder.stdout, 'data');
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
      timeout: 20_000,
    });
    expect(stderr).toBe(
      `Node packages: waiting for another process that holds the lock on ${root}/, as npm ci does …\n`,
    );
    expect(stdout).toBe(
      `another process has held the lock on ${root}/ for 0.1 s: find it with lslocks, end it, and start again\n`,
    );
  });

  test('runs its TypeScript without compiled files of others', () => {
    const folder = newFolder();
    const script =
      "import('./lib/setup/paths.ts').then(({ projectRoot }) => console.log(projectRoot))";
    const { stdout } = spawnSync(
      process.execPath,
      ['--import', './bin/tsx.mjs', '--input-type=module', '-e', script],
      {
        cwd: projectRoot,
        encoding: 'utf8',
        env: { ...process.env, TMPDIR: folder, TSX_DISABLE_CACHE: '' },
      },
    );
    expect([stdout, readdirSync(folder)]).toEqual([`${projectRoot}\n`, []]);
    expect(process.env['TSX_DISABLE_CACHE']).toBe('1');
    expect(readFileSync(join(projectRoot, 'package.json'), 'utf8')).not.toContain('--import tsx');
  });

  asRoot('with a file that others may change is not used by root', () => {
    const { root, says } = checkout();
    chmodSync(join(root, 'bin/compile.mjs'), 0o666);
    expect(says()).toMatch(/^root does not .*: every user may write to \S+\/compile\.mjs, .*\n$/);
    chmodSync(join(root, 'bin/compile.mjs'), 0o644);
    expect(says()).toEqual(isAccepted);
  });

  asRoot('may lose files while they are looked at', async () => {
    const { root } = checkout();
    const script = `const fs = require('node:fs');
      for (;;) { fs.mkdirSync('node_modules/short/lived', { recursive: true }); fs.rmSync('node_modules', { recursive: true }); }`;
    const other = spawn(process.execPath, ['-e', script], { cwd: root, stdio: 'ignore' });
    // It must not make files in a folder that is removed.
    onTestFinished(async () => {
      other.kill('SIGKILL');
      await once(other, 'close');
    });
    await vi.waitUntil(() => existsSync(join(root, 'node_modules')), { interval: 0 });
    for (let looks = 0; looks < 300; looks++) expect(refusalForRoot(root)).toBeUndefined();
  });

  asRoot('gets no packages from root if another user may change it', () => {
    const { root } = checkout();
    chownSync(root, stranger, stranger);
    const { status, stderr } = spawnSync(process.execPath, [join(root, 'bin/packages.mjs')], {
      encoding: 'utf8',
    });
    expect([status, stderr]).toEqual([1, expect.stringMatching(/^root does not run bakeoff in /)]);
  });

  asRoot.each(['node_modules', 'package.json', '.npmrc'])(
    'below a %s of another user is not used by root',
    (name) => {
      const { above, says } = checkout();
      chmodSync(above, 0o1777);
      const planted = join(above, name);
      if (name === 'node_modules') mkdirSync(planted);
      else writeFileSync(planted, '{}');
      expect(says()).toEqual(isAccepted);
      chownSync(planted, stranger, stranger);
      expect(says()).toMatch(
        new RegExp(
          `^root does not run bakeoff in \\S+: ${planted} belongs to user 12345, and npm .*\n$`,
        ),
      );
    },
  );

  test('is started by npm without programs that lie in the folders above', () => {
    const { above, root } = checkout();
    for (const file of ['package.json', '.npmrc'])
      cpSync(join(projectRoot, file), join(root, file));
    const wasRun = plantedIn(join(above, 'node_modules/.bin'), 'sh', 'node', 'setpriv');
    const env = { ...process.env, BAKEOFF_INSTALL: 'no' };
    for (const name of ['scenario', 'test', 'test:all'])
      expect(
        spawnSync('npm', ['run', '--silent', name], { cwd: root, env, encoding: 'utf8' }).stderr,
      ).toEqual(isAccepted);
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      scripts: Record<string, string>;
    };
    for (const script of Object.values(scripts))
      expect(script).toMatch(
        /^(?:NODE_DISABLE_COMPILE_CACHE=1 )?exec "\$\{npm_node_execpath:-node\}" /,
      );
    expect(wasRun()).toBe(false);
  });

  test('compiles without a tsconfig.json of the folders above', async () => {
    const above = newFolder();
    const root = join(above, 'bakeoff');
    cpSync(join(projectRoot, 'bin'), join(root, 'bin'), { recursive: true });
    symlinkSync(join(projectRoot, 'node_modules'), join(root, 'node_modules'));
    writeFileSync(join(root, 'main.ts'), "import { parse } from 'yaml'; console.log(parse);");
    writeFileSync(join(above, 'yaml.ts'), "export const parse = 'planted';");
    const paths = { '*': [`${above}/*`] };
    writeFileSync(join(above, 'tsconfig.json'), JSON.stringify({ compilerOptions: { paths } }));
    const main = pathToFileURL(join(root, 'main.ts'));
    const { bundledForNode } = (await import(
      join(root, 'bin/bundle.mjs')
    )) as typeof import('../../bin/bundle.mjs');
    expect(await bundledForNode(main, {})).not.toContain('planted');
    expect(await bundledForK6(join(root, 'main.ts'), '')).not.toContain('planted');
  });

  test('is tested without code and compiled files of the folders above', () => {
    const above = newFolder();
    const root = join(above, 'bakeoff');
    const packages = join(root, 'node_modules');
    mkdirSync(join(root, 'test/unit'), { recursive: true });
    mkdirSync(packages);
    for (const name of readdirSync(join(projectRoot, 'node_modules')))
      if (!name.startsWith('.'))
        symlinkSync(join(projectRoot, 'node_modules', name), join(packages, name));
    for (const file of ['package.json', 'vitest.config.ts', 'test/restore.ts'])
      cpSync(join(projectRoot, file), join(root, file));
    writeFileSync(
      join(root, 'test/unit/x.test.ts'),
      "import { test } from 'vitest'; test('x', () => {});",
    );
    writeFileSync(join(above, 'pnpm-workspace.yaml'), 'packages: []\n');
    writeFileSync(
      join(above, 'postcss.config.cjs'),
      "require('node:fs').writeFileSync(`${__dirname}/mark`, ''); module.exports = { plugins: [] };",
    );
    const { stdout } = spawnSync(
      process.execPath,
      [join(projectRoot, 'node_modules/vitest/vitest.mjs'), 'run', '--project', 'unit'],
      { cwd: root, encoding: 'utf8' },
    );
    expect(stdout).toMatch(/Tests .*1 passed/);
    expect(readdirSync(above).sort()).toEqual([
      'bakeoff',
      'pnpm-workspace.yaml',
      'postcss.config.cjs',
    ]);
    expect(readdirSync(packages)).toContain('.experimental-vitest-cache');
  });

  asRoot('writes no temporary files as root into an open folder', () => {
    const { says } = checkout();
    const folder = newFolder();
    chmodSync(folder, 0o777);
    expect(says({ TMPDIR: folder })).toMatch(
      new RegExp(`^root's temporary files are not safe in ${folder}: every user may .*\n$`),
    );
  });
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
    chmodSync(join(folder, 'k6'), 0o755);
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
  vi.stubEnv('HOME', home);
  requireOwnHome();
  expect(process.env['HOME']).toBe(home);
  chmodSync(home, 0o1777);
  requireOwnHome();
  expect(process.env['HOME']).toBe(bakeoffFolder);
});

asRoot.each([
  [stranger, ''],
  [stranger + 1, `the members of group ${stranger + 1} may write to `],
])(
  "a user's group that is listed nowhere is theirs if it has their number: %i",
  (group, problem) => {
    const folder = newFolder();
    chmodSync(join(folder, '..'), 0o755);
    chownSync(folder, stranger, group);
    chmodSync(folder, 0o775);
    const trust = pathToFileURL(join(projectRoot, 'bin/trust.mjs')).href;
    const script = `import { whoMayChange } from ${JSON.stringify(trust)}; console.log(whoMayChange(process.argv[1]))`;
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
