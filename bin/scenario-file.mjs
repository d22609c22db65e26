// Compiles a scenario file and hands over the scenario that it exports. lib/cli/find-scenario.ts starts this program: the code of a
// scenario may end its process, wait forever, or leave timers and handlers, and none of these must reach a run.
import { renameSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { serialize } from 'node:v8';
import { build } from 'esbuild';
import { nodeModules } from './bundle.mjs';
import { projectRoot } from './packages.mjs';

/** The rest is the command line of bakeoff, which a scenario sees as its own. */
const [, folder, scenarioFile] = process.argv.splice(1, 3);

/** Much more than code needs: a scenario may import its requests as JSON. */
const mostBytes = 100e6;

/** Refuses pipes and devices: esbuild would read them for ever. */
const plainFiles = {
  name: 'plain files',
  setup: (builder) =>
    builder.onLoad({ filter: /./, namespace: 'file' }, ({ path }) => {
      const problem = problemOf(statSync(path));
      if (problem === undefined) return undefined;
      return { errors: [{ text: path === scenarioFile ? problem : `${path}: ${problem}` }] };
    }),
};

function problemOf(stats) {
  if (!stats.isFile()) return 'it is a pipe, socket or device, not a file';
  return stats.size > mostBytes ? `it has more than ${mostBytes / 1e6} MB` : undefined;
}

/** Marks an import that the plugin below has asked esbuild to resolve. */
const resolved = Symbol('resolved');

/** Resolves `server-bakeoff` and its scenarios to the sources here, and other packages to those of the scenario's own project. */
const packages = {
  name: 'packages',
  setup(builder) {
    builder.onResolve({ filter: /^server-bakeoff$/ }, () => ({
      path: join(projectRoot, 'index.ts'),
    }));
    builder.onResolve({ filter: /^server-bakeoff\/scenarios\/[\w.-]+$/ }, ({ path: name }) => ({
      path: join(projectRoot, 'scenarios', `${basename(name)}.ts`),
    }));
    builder.onResolve({ filter: /^[^./]/ }, async ({ path: name, pluginData, ...from }) => {
      if (pluginData === resolved || from.kind === 'entry-point') return undefined;
      const { kind, importer, resolveDir } = from;
      const target = await builder.resolve(name, {
        kind,
        importer,
        resolveDir,
        pluginData: resolved,
      });
      // esbuild reports these errors itself, and ignores those of an import within try.
      if (target.errors.length > 0) return undefined;
      if (target.external || !/\/node_modules\//.test(target.path)) return target;
      return {
        path: kind === 'require-call' ? target.path : pathToFileURL(target.path).href,
        external: true,
      };
    });
  },
};

/** @returns {Promise<string>} the compiled file @throws Error with a single line */
async function compiled() {
  const options = nodeModules(folder);
  try {
    await build({
      ...options,
      entryPoints: [{ in: scenarioFile, out: 'scenario' }],
      plugins: [plainFiles, packages, ...options.plugins],
    });
  } catch (error) {
    const [first] = error.errors ?? [];
    if (first === undefined) throw new Error('it cannot be compiled', { cause: error });
    const line = first.location === null ? '' : ` (line ${first.location.line})`;
    const isWrongName = first.text.startsWith('Could not resolve "bakeoff');
    const meant = isWrongName ? ': the package is "server-bakeoff"' : '';
    throw new Error(`${first.text}${meant}${line}`, { cause: error });
  }
  return join(folder, 'scenario.mjs');
}

/** The default export: a scenario, or the list of an article's; undefined if it is neither. */
function scenarioOf({ default: exported }) {
  // The default export of a CommonJS module is nested.
  const found = exported?.default ?? exported;
  const all = [found].flat();
  return all.length > 0 && all.every(isScenario) ? found : undefined;
}

const isScenario = (value) => typeof value === 'object' && value !== null && 'variants' in value;

/** @returns {Buffer} @throws Error with a single line */
function serialized(scenario) {
  try {
    return serialize({ scenario });
  } catch (error) {
    throw new Error(`a scenario may have data only: ${error.message}`, { cause: error });
  }
}

/** Writes the answer and ends this process at once, with all that the scenario's code and esbuild have started. */
function answer(bytes) {
  writeFileSync(join(folder, 'part'), bytes);
  renameSync(join(folder, 'part'), join(folder, 'answer'));
  process.kill(0, 'SIGKILL');
}

const fail = (error) =>
  answer(serialize({ problem: error instanceof Error ? error.message : String(error) }));

process.on('uncaughtException', fail);
process.on('beforeExit', () => fail('its top-level await waits for what never comes'));

async function load() {
  const module = await import(pathToFileURL(await compiled()).href);
  // Rejections that nobody handles arrive after the import.
  await new Promise((resolve) => setImmediate(resolve));
  answer(serialized(scenarioOf(module)));
}

load().catch(fail);
