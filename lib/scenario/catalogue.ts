// Finds scenarios and their variants by the words a person types.
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { messageOf, UserError } from '../errors.ts';
import { isObject } from '../form.ts';
import { fromCallersFolder, projectRoot } from '../setup/paths.ts';
import { defineScenario } from './define-scenario.ts';
import type { Scenario, Variant } from './model.ts';
import { unknownWord } from '../nearest.ts';
import { loadModules } from './load-modules.ts';
import { withOwnFiles } from './own-files.ts';
import { isRunnable } from './variants.ts';

export {
  baselineName,
  configOf,
  fitVariantLoad,
  isConfigured,
  isOwn,
  isRunnable,
  loadOf,
  networkOf,
  pageOf,
  programOf,
  type RunnableVariant,
} from './variants.ts';

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
