// Compiles the commands once for each state of their sources: at each start that would take a second.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Compiled sources that are older than this, in milliseconds, are gone at the next compilation: what runs long may still read them. */
const keptMs = 24 * 3600 * 1000;

/**
 * The path of the compiled lib/cli/main.ts, which is made where it is not there: in node_modules, where packages are found from.
 * @param projectRoot with a slash at its end
 * @throws Error where it cannot be compiled, or node_modules not be written to
 */
export async function compiledCommands(projectRoot) {
  const all = join(projectRoot, 'node_modules/.bakeoff-commands');
  const folder = join(all, stateOf(projectRoot));
  const main = join(folder, 'main.mjs');
  if (existsSync(main)) return main;
  const { build } = await import('esbuild');
  removeOld(all);
  const fresh = mkdtempSync(join(projectRoot, 'node_modules/.bakeoff-compiling-'));
  try {
    await build({
      entryPoints: [join(projectRoot, 'lib/cli/main.ts')],
      outdir: fresh,
      outExtension: { '.js': '.mjs' },
      bundle: true,
      splitting: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      packages: 'external',
      logLevel: 'silent',
      // Files are found from where the source is.
      define: { 'import.meta.url': 'sourceUrl', 'import.meta.dirname': 'sourceFolder' },
      plugins: [{ name: 'places', setup: (builder) => builder.onLoad({ filter: /\.ts$/ }, ({ path }) => ({ contents: withPlace(path), loader: 'ts' })) }],
    });
    mkdirSync(all, { recursive: true });
    renameSync(fresh, folder);
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true });
    // Another start may have been sooner.
    if (!existsSync(main)) throw error;
  }
  return main;
}

function withPlace(path) {
  const text = readFileSync(path, 'utf8');
  if (!/import\.meta\.(?:url|dirname)/.test(text)) return text;
  return `const sourceUrl = ${JSON.stringify(pathToFileURL(path).href)}, sourceFolder = ${JSON.stringify(dirname(path))};\n${text}`;
}

/** Of all that may be compiled, and of the compiler. */
function stateOf(projectRoot) {
  const sources = ['lib', 'bench'].flatMap((folder) => readdirSync(join(projectRoot, folder), { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name)));
  const hash = createHash('sha256');
  for (const file of [...sources.sort(), ...['package.json', 'package-lock.json', 'xk6-loadgen/metrics.json'].map((name) => join(projectRoot, name))]) {
    const { size, mtimeMs } = statSync(file);
    hash.update(`${file} ${size} ${mtimeMs}\n`);
  }
  return hash.digest('hex').slice(0, 16);
}

function removeOld(all) {
  if (!existsSync(all)) return;
  for (const name of readdirSync(all)) {
    const folder = join(all, name);
    if (Date.now() - statSync(folder).mtimeMs > keptMs) rmSync(folder, { recursive: true, force: true });
  }
}
