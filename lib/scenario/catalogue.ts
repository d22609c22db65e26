// The shipped scenarios, and the variants of a scenario by name.
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { usageError, unknownWord } from '../errors.ts';
import { byName, present, allNames } from '../present.ts';
import { projectRoot } from '../setup/paths.ts';
import { defineScenario } from './define-scenario.ts';
import type { Article } from './article.ts';
import type { Scenario, ServerSpec, Variant } from './model.ts';
import { isConfigured, isPath, isRunnable } from './variants.ts';

const scenariosFolder = path.join(projectRoot, 'scenarios');

/** All shipped scenarios, by name. */
export async function loadScenarios(): Promise<Scenario[]> {
  return Promise.all((await shippedNames()).map(read));
}

/** The articles of shipped scenarios, by id. */
export function articlesOf(scenarios: readonly Scenario[]): Article[] {
  const byId = new Map<string, Article>();
  for (const { article } of scenarios) if (article !== undefined) byId.set(article.id, article);
  return [...byId.values()].sort((a, b) => a.id.localeCompare(b.id));
}

async function shippedNames(): Promise<string[]> {
  const files = await readdir(scenariosFolder);
  const scripts = files.filter((file) => file.endsWith('.ts'));
  return scripts.map((file) => path.basename(file, '.ts')).sort();
}

/**
 * The named variants in the scenario's order, or all but those `onRequest`. @throws UserError (exit code 2): unknown, or none can be run
 */
export function findVariants(scenario: Scenario, names?: readonly string[]): Variant[] {
  const { variants } = scenario;
  if (names === undefined) return variants.filter(({ onRequest }) => onRequest !== true);
  const known = allNames(variants);
  const wanted = names.map((name) => name.trim());
  for (const name of wanted)
    if (!known.includes(name)) throw unknownWord(`variant of ${scenario.name}`, name, known);
  const chosen = variants.filter(({ name }) => wanted.includes(name));
  if (chosen.some(isRunnable)) return chosen;
  throw usageError(
    `--variants ${wanted.join(',')}: published only, so there is nothing to run; name another one too`,
  );
}

/**
 * The shipped scenario of that name.
 * @throws UserError (exit code 2) if there is none
 */
export async function shippedScenario(name: string): Promise<Scenario> {
  const names = await shippedNames();
  if (!names.includes(name)) throw unknownWord('scenario', name, names);
  return read(name);
}

async function read(name: string): Promise<Scenario> {
  const module = (await import(`../../scenarios/${name}.ts`)) as { default: unknown };
  return checkedScenario(module.default, scenariosFolder);
}

/**
 * The scenario that a file in `folder` exports, with absolute paths.
 * @throws Error or UserError if it is wrong
 */
export function checkedScenario(exported: unknown, folder: string): Scenario {
  if (exported !== undefined) return withOwnFiles(defineScenario(exported as Scenario), folder);
  throw new Error(
    'it has no scenario as its default export: write "export default defineScenario({ … })"',
  );
}

type Parts = Pick<Variant, 'page' | 'network'>;

/** The scenario with absolute paths. As in an import, ./ is relative to the scenario's `folder`. @throws Error for a missing file */
function withOwnFiles(scenario: Scenario, folder: string): Scenario {
  const absolute = (name: string, what: string): string => {
    if (!isPath(name)) return name;
    const full = path.resolve(folder, name);
    if (existsSync(full)) return full;
    throw new Error(`${what} ${name}: there is no ${full}`);
  };
  const ownFiles = (names: readonly string[], what: string) =>
    names.map((name) => absolute(name, what));
  const server = (spec: ServerSpec): ServerSpec => {
    if (isConfigured(spec))
      return { ...spec, config: ownFiles(spec.config, `${spec.name} config`) };
    if (spec.name === 'address' || spec.folder === undefined) return spec;
    return { ...spec, folder: absolute(path.resolve(folder, spec.folder), 'command folder') };
  };
  const parts = ({ page, network }: Parts): Parts =>
    present({
      page: page && {
        ...page,
        ...present({ docroot: page.docroot && absolute(page.docroot, 'docroot') }),
      },
      network: network && {
        ...network,
        ...byName(['serverSettings', 'clientSettings'], (side) => ownFiles(network[side], side)),
      },
    });
  const variants = scenario.variants.map((variant): Variant => ({
    ...variant,
    server: isRunnable(variant) ? server(variant.server) : variant.server,
    ...parts(variant),
  }));
  return { ...scenario, ...parts(scenario), variants };
}
