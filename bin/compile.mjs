// Compiles dist/ when the sources have changed: to compile at each start would take a second. To run it by hand:
// node bin/compile.mjs
import { createHash } from 'node:crypto';
import {
  chmodSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nodeModules, withShortNames } from './bundle.mjs';
import { callerOwning } from './trust.mjs';

/** Each compilation deletes older chunks. Younger ones stay, because a running command may still load them. */
const dayMs = 24 * 3600 * 1000;

/**
 * Compiles the commands and the package's exports if the sources have changed.
 * @param {string} projectRoot without symbolic links in its path
 * @param {number} keptMs chunks of an earlier compilation are kept this long
 * @returns {Promise<string>} the path of the compiled lib/cli/main.ts
 * @throws Error if the sources do not compile or dist/ is not writable
 */
export async function compiledCommands(projectRoot, keptMs = dayMs) {
  const dist = join(projectRoot, 'dist');
  const main = join(dist, 'main.mjs');
  const stateFile = join(dist, 'state');
  const sources = sourcesOf(projectRoot);
  const [seen, content] = (read(stateFile) ?? '').split('\n');
  const seenNow = seenOf(projectRoot, sources);
  if (seen === seenNow) return main;
  const contentNow = contentOf(projectRoot, sources);
  // A copy at another path, which may be read-only.
  if (content === contentNow) return main;
  const { build } = await import('esbuild');
  const umask = process.umask(0o022);
  // Where the umask is 0, as in some containers, other users could replace the commands.
  process.umask(umask | 0o022);
  // A default access control list of the folder above takes the place of the umask.
  if (mkdirSync(dist, { recursive: true }) !== undefined)
    chmodSync(dist, statSync(dist).mode & ~0o022);
  // Another command may compile at the same time, to the same files. So each file is renamed into place, and the state comes
  // last.
  const fresh = mkdtempSync(join(dist, 'compiling-'));
  try {
    const { plugins, ...options } = nodeModules(dist);
    const { outputFiles } = await build({
      ...options,
      plugins: [afterMain(projectRoot), ...plugins],
      entryPoints: entryPointsOf(projectRoot),
      packages: 'external',
      write: false,
    });
    const names = outputFiles.map(({ path }) => path.slice(dist.length + 1));
    outputFiles.forEach(({ text }, index) =>
      writeFileSync(join(fresh, names[index]), withShortNames(text, projectRoot)),
    );
    writeFileSync(join(fresh, 'state'), `${seenNow}\n${contentNow}\n`);
    // If the folder has a default access control list, it replaces the umask.
    for (const name of [...names, 'state']) {
      const file = join(fresh, name);
      chmodSync(file, statSync(file).mode & ~0o022);
    }
    for (const name of [...names, 'state']) renameSync(join(fresh, name), join(dist, name));
    removeOld(dist, names, keptMs);
    // The owner of the checkout compiles there too.
    const caller = callerOwning(projectRoot);
    if (caller !== undefined)
      for (const file of ['', ...names, 'state'])
        lchownSync(join(dist, file), caller.uid, caller.gid);
  } finally {
    process.umask(umask);
    rmSync(fresh, { recursive: true, force: true });
  }
  return main;
}

/**
 * Has each file of lib that is loaded when needed import main, which is loaded by then. Otherwise esbuild, which does not know this, makes a
 * chunk for each set of such files that share sources, and each start reads half as many files more.
 * @param {string} projectRoot
 * @returns {import('esbuild').Plugin}
 */
function afterMain(projectRoot) {
  const main = JSON.stringify(join(projectRoot, 'lib/cli/main.ts'));
  const isOfLib = (path) => path.startsWith(join(projectRoot, 'lib/'));
  return {
    name: 'after main',
    setup(builder) {
      builder.onResolve({ filter: /^\..*\.ts$/ }, ({ kind, resolveDir, path: name }) => {
        const path = join(resolveDir, name);
        return kind === 'dynamic-import' && isOfLib(path)
          ? { path, namespace: 'after-main' }
          : undefined;
      });
      builder.onLoad({ filter: /^/, namespace: 'after-main' }, ({ path }) => ({
        contents: `import ${main}; export * from ${JSON.stringify(path)};`,
        resolveDir: projectRoot,
      }));
    },
  };
}

/** The commands, the package, and the shipped scenarios, because a user's scenario may import them. */
function entryPointsOf(projectRoot) {
  const scenarios = readdirSync(join(projectRoot, 'scenarios')).filter((name) =>
    name.endsWith('.ts'),
  );
  const entryPoints = {
    main: join(projectRoot, 'lib/cli/main.ts'),
    index: join(projectRoot, 'index.ts'),
  };
  for (const name of scenarios)
    entryPoints[`scenario-${name.slice(0, -'.ts'.length)}`] = join(projectRoot, 'scenarios', name);
  return entryPoints;
}

function read(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

/** All that may be compiled, and the compiler's version; below the project's folder. */
function sourcesOf(projectRoot) {
  const files = ['lib', 'bin', 'scenarios'].flatMap((folder) =>
    readdirSync(join(projectRoot, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.name.endsWith('.test.ts'))
      .map((entry) => relative(projectRoot, join(entry.parentPath, entry.name))),
  );
  return [
    ...files.sort(),
    'index.ts',
    'package.json',
    'package-lock.json',
    'xk6-loadgen/metrics.json',
  ];
}

/** Quick to tell, and another one where the checkout was copied or cloned. */
function seenOf(projectRoot, sources) {
  const hash = createHash('sha256');
  for (const file of sources) {
    const { size, mtimeMs } = statSync(join(projectRoot, file), { throwIfNoEntry: false }) ?? {};
    hash.update(`${file} ${size} ${mtimeMs}\n`);
  }
  return hash.digest('hex');
}

function contentOf(projectRoot, sources) {
  const hash = createHash('sha256');
  for (const file of sources) hash.update(`${file} ${read(join(projectRoot, file)) ?? ''}\n`);
  return hash.digest('hex');
}

function removeOld(dist, names, keptMs) {
  for (const name of readdirSync(dist)) {
    const file = join(dist, name);
    const ageMs = Date.now() - statSync(file, { throwIfNoEntry: false })?.mtimeMs;
    const isPart = name.endsWith('.mjs') && !names.includes(name);
    if ((isPart && ageMs > keptMs) || (name.startsWith('compiling-') && ageMs > dayMs))
      rmSync(file, { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  await compiledCommands(fileURLToPath(new URL('..', import.meta.url)));
