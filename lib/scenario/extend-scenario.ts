// Makes a scenario from another one, such as a shipped one with a page of one's own.
import { present } from '../present.ts';
import { defineScenario } from './define-scenario.ts';
import { measuringFields, type Scenario, type ServerName, type Variant } from './model.ts';
import type { ConfigName } from './shipped.ts';
import { isConfigured, isRunnable } from './variants.ts';

type Configs = { [Server in ServerName]?: readonly ConfigName<Server>[] };

export interface ScenarioChanges extends Partial<Omit<Scenario, 'name'>> {
  name: string;
  /** Replace the base's variants of these names, or are added. */
  variants?: readonly Variant[];
  /** Laid over the config of each of the base's variants, unless it is `asIs`: `{ nginx: ['tls', './own.conf'] }`. */
  configs?: Configs;
}

/**
 * Returns a scenario like `base`, with these parts replaced or added. Variants keep loads, pages and networks of their own.
 *
 * Published figures of a variant whose load, page, network or config changes are left out, and of all with a new measuring field:
 * the article measured something else. Article and footnotes go with the last figures, as do variants that have only these.
 *
 * Relative paths in `base` are relative to the file that is run.
 * @throws UserError that names the wrong field
 */
export function extendScenario(base: Scenario, changes: ScenarioChanges): Scenario {
  const { variants: newVariants = [], configs = {}, ...parts } = changes;
  const byName = new Map<string, Variant>();
  for (const variant of base.variants) {
    const changed = changedVariant(variant, changes, configs);
    if (isRunnable(changed) || changed.published !== undefined) byName.set(variant.name, changed);
  }
  for (const variant of newVariants) byName.set(variant.name, variant);
  const variants = [...byName.values()];
  const { article, footnotes, alsoCompare, ...rest } = base;
  const pairs = alsoCompare?.filter(
    ({ variant, against }) => byName.has(variant) && byName.has(against),
  );
  const keepsArticle = isPublished(variants) || !isPublished(base.variants);
  const ofArticle = keepsArticle ? present({ article, footnotes }) : {};
  return defineScenario({
    ...rest,
    ...present({ alsoCompare: pairs }),
    ...ofArticle,
    ...parts,
    variants,
  });
}

function isPublished(variants: readonly Variant[]): boolean {
  return variants.some(({ published }) => published !== undefined);
}

function changedVariant(variant: Variant, changes: ScenarioChanges, configs: Configs): Variant {
  const { load, page, network } = changes;
  const { published: _, ...rest } = variant;
  const isLoadedOtherwise =
    (load !== undefined && variant.load === undefined) ||
    (page !== undefined && variant.page === undefined) ||
    (network !== undefined && variant.network === undefined) ||
    measuringFields.some((field) => changes[field] !== undefined);
  const changed = withConfigs(rest, configs);
  return isLoadedOtherwise || changed !== rest ? changed : variant;
}

function withConfigs(variant: Variant, configs: Configs): Variant {
  const { server } = variant;
  if (typeof server === 'string' || !isConfigured(server) || server.asIs !== undefined)
    return variant;
  const more = configs[server.name] ?? [];
  if (more.length === 0) return variant;
  return { ...variant, server: { ...server, config: [...server.config, ...more] } };
}
