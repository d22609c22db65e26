// Root starts no checkout and no installed package that others may change, and takes nothing from the folders above it.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
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
import { refusalForRoot } from '../../bin/refusal.mjs';
import { run } from '../../lib/process.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { plantedIn } from '../fixtures/planted.ts';

const asRoot = it.runIf(process.geteuid?.() === 0);
const stranger = 12_345;

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
    chmodSync(join(root, 'bin/compile.mjs'), 0o666);
    expect(says()).toMatch(/^root does not .*: every user may write to \S+\/compile\.mjs, .*\n$/);
    chmodSync(join(root, 'bin/compile.mjs'), 0o644);
    const packages = newFolder();
    mkdirSync(join(packages, 'esbuild'));
    writeFileSync(join(packages, 'esbuild/main.js'), '');
    symlinkSync(packages, join(root, 'node_modules'));
    symlinkSync(root, join(packages, 'esbuild/round'));
    expect(says()).toEqual(isAccepted);
    chmodSync(join(packages, 'esbuild/main.js'), 0o666);
    expect(says()).toMatch(/^root does not .*: every user may write to \S+\/main\.js, .*\n$/);
    chmodSync(join(packages, 'esbuild/main.js'), 0o644);
    mkdirSync(join(packages, 'vitest'));
    const ofTests = join(packages, 'vitest/of-tests.js');
    writeFileSync(ofTests, '');
    chmodSync(ofTests, 0o666);
    expect(refusalForRoot(root)).toBeUndefined();
    expect(refusalForRoot(root, true)).toMatch(/: every user may write to \S+\/of-tests\.js, /);
    rmSync(join(root, 'node_modules'));
    mkdirSync(join(root, '.git'));
    writeFileSync(join(root, '.git/config'), '');
    chmodSync(join(root, '.git/config'), 0o666);
    expect(says()).toMatch(/^root does not .*: every user may write to \S+\/\.git\/config, .*\n$/);
    rmSync(join(root, '.git'), { recursive: true });
    writeFileSync(join(root, '.git'), 'gitdir: elsewhere');
    chownSync(join(root, 'bin'), stranger, stranger);
    expect(says()).toMatch(/^root does not .*: \S+\/bin belongs to user 12345, .*\n$/);
    const caller = String(stranger);
    expect(says({ SUDO_UID: caller, SUDO_GID: caller })).toEqual(isAccepted);
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
      made('first', '@scope/second', 'valibot', 'server-bakeoff');
      const code = join(made('valibot'), 'index.js');
      writeFileSync(code, '');
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
      chmodSync(code, 0o666);
      expect(says()).toContain(`: every user may write to ${code}, `);
      chmodSync(code, 0o644);
      rmSync(second, { recursive: true });
      const elsewhere = newFolder();
      chmodSync(elsewhere, 0o777);
      symlinkSync(elsewhere, second);
      expect(says()).toContain(`: every user may write to ${elsewhere}, `);
      chmodSync(elsewhere, 0o755);
      const file = join(elsewhere, 'index.js');
      writeFileSync(file, '');
      chmodSync(file, 0o666);
      expect(says()).toContain(`: every user may write to ${file}, `);
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
      BAKEOFF_INSTALL: '',
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
    // Whoever installs removes the stamp first.
    const lockFile = readFileSync(join(root, 'package-lock.json'));
    const stamp = createHash('sha256').update(lockFile).update(process.arch).digest('hex');
    mkdirSync(join(root, 'node_modules'), { recursive: true });
    writeFileSync(join(root, 'node_modules/.bakeoff-stamp'), stamp);
    const there = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
      timeout: 20_000,
    });
    expect(there).toMatchObject({ stdout: 'undefined\n', stderr: '' });
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
    await vi.waitUntil(() => existsSync(join(root, 'node_modules')), {
      timeout: 20_000,
      interval: 0,
    });
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

  test('compiles without what lies in the folders of the caller and above', async () => {
    const above = newFolder();
    const root = join(above, 'bakeoff');
    for (const name of ['bin', 'lib', 'package.json', 'xk6-loadgen/metrics.json'])
      cpSync(join(projectRoot, name), join(root, name), { recursive: true });
    symlinkSync(join(projectRoot, 'node_modules'), join(root, 'node_modules'));
    // Of all that Node and its tools look for there: a tsconfig.json, and a manifest of Yarn, which both lead imports elsewhere.
    mkdirSync(join(above, 'planted'));
    const paths = { '*': [`${above}/planted/*`] };
    writeFileSync(join(above, 'tsconfig.json'), JSON.stringify({ compilerOptions: { paths } }));
    const packages = ['esbuild', 'yaml', 'valibot', 'fastest-levenshtein', '@observablehq/plot'];
    for (const name of packages) {
      mkdirSync(join(above, 'planted', name), { recursive: true });
      writeFileSync(join(above, 'planted', name, 'index.js'), "export const parse = 'planted';");
    }
    const links = packages.map((name) => [name, 'npm:1.0.0']);
    const manifest = {
      __info: [],
      dependencyTreeRoots: [{ name: 'root', reference: 'workspace:.' }],
      ignorePatternData: null,
      enableTopLevelFallback: true,
      fallbackPool: [],
      fallbackExclusionList: [],
      packageRegistryData: [
        [null, [[null, { packageLocation: './', packageDependencies: links, linkType: 'SOFT' }]]],
        ...packages.map((name) => {
          const at = { packageLocation: `./planted/${name}/`, packageDependencies: [] };
          return [name, [['npm:1.0.0', { ...at, linkType: 'HARD' }]]];
        }),
      ],
    };
    writeFileSync(join(above, '.pnp.data.json'), JSON.stringify(manifest));
    writeFileSync(join(root, 'main.ts'), "import { parse } from 'yaml'; console.log(parse);");
    const bundles = `
      import assert from 'node:assert';
      // Of prettier and npm, in a folder among the temporary files that another user may have made.
      assert(process.env.NODE_DISABLE_COMPILE_CACHE === '1');
      import { bundledForNode } from './bin/bundle.mjs';
      import { bundledForK6 } from './lib/runner/k6.ts';
      import { page } from './lib/report/html/page.ts';
      console.log(await bundledForNode(new URL('main.ts', '${pathToFileURL(root)}/'), {}));
      console.log(await bundledForK6('${root}/main.ts', ''));
      console.log(await page('', '', [{ title: '', text: '', data: {}, tables: [] }]));`;
    writeFileSync(join(root, 'bundles.ts'), bundles);
    const words = ['--import', join(projectRoot, 'bin/tsx.mjs'), 'bundles.ts'];
    const { stdout, stderr } = await run({ command: process.execPath, args: words, cwd: root });
    expect(stderr).toBe('');
    expect(stdout.length).toBeGreaterThan(100_000);
    expect(stdout).not.toContain('planted');
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
