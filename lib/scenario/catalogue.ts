// Finds scenarios and their variants by the words a person types.
import { existsSync, statSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { build, type BuildFailure, type Plugin } from 'esbuild';
import { messageOf, UserError } from '../errors.ts';
import { isObject } from '../form.ts';
import { fromCallersFolder, projectRoot } from '../setup/paths.ts';
import { defineScenario } from './define-scenario.ts';
import type { Scenario, ServerSpec, Variant } from './model.ts';
import { unknownWord } from '../nearest.ts';
import { isPath, isRunnable, isConfigured } from './variants.ts';
import { byName, present } from '../present.ts';
import { nodeModules } from '../../bin/bundle.mjs';
import { inTemporaryFolder } from '../files.ts';

const scenariosFolder = path.join(projectRoot, 'scenarios');

/** All scenarios that are shipped, in the order of their names. */
export async function loadScenarios(): Promise<Scenario[]> {
  return loadScenarioFiles((await shippedNames()).map(shippedFile));
}

async function shippedNames(): Promise<string[]> {
  return (await readdir(scenariosFolder))
    .filter((file) => file.endsWith('.ts'))
    .map((file) => path.basename(file, '.ts'))
    .sort();
}

const shippedFile = (name: string): string => path.join(scenariosFolder, `${name}.ts`);

/** The scenario of that name, or file (with a / or a script's ending). Throws UserError: exit code 2 if there is none, 1 for a bad one. */
export async function findScenario(name: string): Promise<Scenario> {
  const isOwn = name.includes('/') || /\.[cm]?[jt]s$/.test(name);
  const file = isOwn ? fromCallersFolder(name) : shippedFile(name);
  if (!existsSync(file))
    throw isOwn
      ? new UserError(`there is no scenario file ${file}`, 2)
      : unknownWord('scenario', name, await shippedNames());
  return (await loadScenarioFiles([file]))[0] as Scenario;
}

/**
 * The variants named, in the scenario's order; without names, all but those `onRequest`.
 * @throws UserError (exit code 2) for names that are empty, given twice or unknown, and when none of them can be run
 */
export function findVariants(scenario: Scenario, names?: readonly string[]): Variant[] {
  if (names === undefined) return scenario.variants.filter((variant) => variant.onRequest !== true);
  const known = scenario.variants.map((variant) => variant.name);
  const wanted = names.map((name) => name.trim());
  if (wanted.length === 0 || wanted.includes('')) {
    throw new UserError(
      `--variants wants names with commas between them, of ${known.join(', ')}`,
      2,
    );
  }
  for (const name of wanted) {
    if (!known.includes(name)) throw unknownWord(`variant of ${scenario.name}`, name, known);
    if (wanted.indexOf(name) !== wanted.lastIndexOf(name))
      throw new UserError(`--variants names ${name} twice`, 2);
  }
  const found = scenario.variants.filter((variant) => wanted.includes(variant.name));
  if (!found.some(isRunnable)) {
    throw new UserError(
      `--variants ${wanted.join(',')}: published only, so there is nothing to run; name another one too`,
      2,
    );
  }
  return found;
}

async function loadScenarioFiles(files: readonly string[]): Promise<Scenario[]> {
  let file = files[0];
  try {
    return (await loadModules(files)).map((module, index) => {
      file = files[index];
      return scenarioOf(module, path.dirname(file as string));
    });
  } catch (error) {
    const [line] = messageOf(error).split('\n');
    throw new UserError(`${file}: ${line}`);
  }
}

function scenarioOf(module: unknown, folder: string): Scenario {
  let exported = (module as { default?: unknown }).default;
  // The default export of a CommonJS module is one level down.
  if (isObject(exported) && 'default' in exported) exported = exported.default;
  if (isObject(exported) && 'variants' in exported)
    return withOwnFiles(defineScenario(exported as unknown as Scenario), folder);
  throw new Error(
    'it has no scenario as its default export: write "export default defineScenario({ … })"',
  );
}

// Files of a person's own that a scenario names. As in an import, what begins with ./ or ../ is meant from the scenario's
// file, and a bare name is one that is shipped.

/** The scenario with absolute paths, from its file's absolute `folder`. Throws Error for a file that is not there. */
export function withOwnFiles(scenario: Scenario, folder: string): Scenario {
  const own = (name: string, kind: 'file' | 'folder', what: string): string =>
    isPath(name) ? found(folder, name, kind, what) : name;
  const filesFrom = (names: readonly string[], what: string): string[] =>
    names.map((name) => own(name, 'file', what));
  const serverFrom = (server: ServerSpec, where: string): ServerSpec => {
    if (isConfigured(server))
      return { ...server, config: filesFrom(server.config, `${where}${server.name} config`) };
    if (server.name === 'address' || server.folder === undefined) return server;
    return { ...server, folder: found(folder, server.folder, 'folder', `${where}command folder`) };
  };
  const partsFrom = (
    { page, network }: Pick<Variant, 'page' | 'network'>,
    where: string,
  ): Pick<Variant, 'page' | 'network'> =>
    present({
      page: page && {
        ...page,
        ...present({
          docroot: page.docroot && own(page.docroot, 'folder', `${where}page: docroot`),
        }),
      },
      network: network && {
        ...network,
        ...byName(['serverSettings', 'clientSettings'], (side) =>
          filesFrom(network[side], `${where}network: ${side}`),
        ),
      },
    });
  const variantFrom = (variant: Variant): Variant => {
    const where = `variant "${variant.name}": `;
    return {
      ...variant,
      server:
        typeof variant.server === 'string' ? variant.server : serverFrom(variant.server, where),
      ...partsFrom(variant, where),
    };
  };
  return { ...scenario, ...partsFrom(scenario, ''), variants: scenario.variants.map(variantFrom) };
}

function found(folder: string, name: string, kind: 'file' | 'folder', what: string): string {
  const full = path.resolve(folder, name);
  const there = statSync(full, { throwIfNoEntry: false });
  if (there === undefined) throw new Error(`${what} ${name}: there is no ${kind} ${full}`);
  if (kind === 'folder' ? !there.isDirectory() : there.isDirectory())
    throw new Error(`${what} ${name}: ${full} is no ${kind}`);
  return full;
}

// Loads scenarios' files as they are now: TypeScript or not, a person's own among them.

/** What the files export. Throws Error with one line for what cannot be compiled, or as a module throws it. */
export async function loadModules(files: readonly string[]): Promise<unknown[]> {
  return inTemporaryFolder('bakeoff-scenario-', async (folder) => {
    const options = nodeModules(folder);
    const entryPoints = files.map((file, index) => ({ in: file, out: String(index) }));
    await build({ ...options, entryPoints, plugins: [packages, ...options.plugins] }).catch(
      ({ errors: [first] }: BuildFailure) => {
        throw new Error(
          first === undefined
            ? 'it cannot be compiled'
            : `${first.text}${first.location === null ? '' : ` (line ${first.location.line})`}`,
        );
      },
    );
    return Promise.all(
      files.map(
        (_, index) =>
          import(pathToFileURL(path.join(folder, `${index}.mjs`)).href) as Promise<unknown>,
      ),
    );
  });
}

/** Our own is the one that runs, whether the file's project has it or not; others are where that project has them. */
const packages: Plugin = {
  name: 'packages',
  setup(builder) {
    builder.onResolve({ filter: /^server-bakeoff$/ }, () => ({
      path: path.join(projectRoot, 'lib/index.ts'),
    }));
    builder.onResolve(
      { filter: /^[^./]/ },
      async ({ path: name, kind, importer, resolveDir, pluginData }) => {
        if (pluginData === resolved || kind === 'entry-point') return undefined;
        const found = await builder.resolve(name, {
          kind,
          importer,
          resolveDir,
          pluginData: resolved,
        });
        if (found.external || !/\/node_modules\//.test(found.path)) return found;
        return {
          path: kind === 'require-call' ? found.path : pathToFileURL(found.path).href,
          external: true,
        };
      },
    );
  },
};

/** Marks what is asked again. */
const resolved = Symbol('resolved');
