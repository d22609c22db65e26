// Makes the JavaScript of dist/, once for each state of the sources: compiling at each start would take a second. By hand:
// node bin/compile.mjs
import { createHash } from 'node:crypto';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nodeModules } from './bundle.mjs';

/** What is older than this is gone at the next compilation: what runs long may still read its parts. */
const dayMs = 24 * 3600 * 1000;

/**
 * Compiles the commands, and what the package exports, where they are not as the sources are.
 * @param {string} projectRoot without symbolic links in its path
 * @param {number} keptMs parts of another state are kept so long
 * @returns {Promise<string>} the path of the compiled lib/cli/main.ts
 * @throws Error where something cannot be compiled, or dist/ not be written to
 */
export async function compiledCommands(projectRoot, keptMs = dayMs) {
  const dist = join(projectRoot, 'dist');
  const main = join(dist, 'main.mjs');
  const stateFile = join(dist, 'state');
  const state = stateOf(projectRoot);
  if (read(stateFile) === state) return main;
  const { build } = await import('esbuild');
  mkdirSync(dist, { recursive: true });
  // A start at the same time makes the same: each file comes whole, and the state when all are there.
  const fresh = mkdtempSync(join(dist, 'compiling-'));
  try {
    const { outputFiles } = await build({
      ...nodeModules(dist),
      entryPoints: entryPointsOf(projectRoot),
      packages: 'external',
      write: false,
    });
    const names = outputFiles.map(({ path }) => path.slice(dist.length + 1));
    outputFiles.forEach(({ contents }, index) =>
      writeFileSync(join(fresh, names[index]), contents),
    );
    writeFileSync(join(fresh, 'state'), state);
    for (const name of [...names, 'state']) renameSync(join(fresh, name), join(dist, name));
    removeOld(dist, names, keptMs);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
  return main;
}

/** The commands, the package, and the shipped scenarios, which a scenario of a user may import. */
function entryPointsOf(projectRoot) {
  const scenarios = readdirSync(join(projectRoot, 'scenarios')).filter((name) =>
    name.endsWith('.ts'),
  );
  const entryPoints = {
    main: join(projectRoot, 'lib/cli/main.ts'),
    index: join(projectRoot, 'lib/index.ts'),
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

/** Of all that may be compiled, and of the compiler. */
function stateOf(projectRoot) {
  const sources = ['lib', 'bin', 'scenarios'].flatMap((folder) =>
    readdirSync(join(projectRoot, folder), { recursive: true, withFileTypes: true })
      .filter((one) => one.isFile())
      .map((one) => join(one.parentPath, one.name)),
  );
  const hash = createHash('sha256');
  for (const file of [
    ...sources.sort(),
    ...['package.json', 'package-lock.json', 'xk6-loadgen/metrics.json'].map((name) =>
      join(projectRoot, name),
    ),
  ]) {
    const { size, mtimeMs } = statSync(file, { throwIfNoEntry: false }) ?? {};
    hash.update(`${file} ${size} ${mtimeMs}\n`);
  }
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
