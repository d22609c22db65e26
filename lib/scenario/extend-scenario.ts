// Makes a scenario from another one, such as a shipped one with a page of one's own.
import { present } from '../present.ts';
import { defineScenario } from './define-scenario.ts';
import type { ServerName } from '../setup/servers.ts';
import { measuringFields, type ConfigName, type Scenario, type Variant } from './model.ts';
import { isConfigured, isRunnable } from './variants.ts';

/** Config files by server, as in ConfiguredServer. */
type Configs = { [Server in ServerName]?: readonly ConfigName<Server>[] };

/** The differences from the base. A field of a scenario replaces the base's. */
export interface ScenarioChanges extends Partial<Omit<Scenario, 'name'>> {
  /** A name of its own, because results and dashboards group by it. */
  name: string;
  /** Replace the base's variants of these names; others are added at the end. */
  variants?: readonly Variant[];
  /** Laid over the config of each of the base's variants, unless it is `asIs`: `{ nginx: ['tls', './own.conf'] }`. */
  configs?: Configs;
}

/**
 * Returns a scenario like `base`, with these parts replaced or added. A variant that has a load, page or network of its own keeps it.
 *
 * The published figures of a variant are left out if its load, page, network or config changes, or one of the scenario's
 * measuringFields: then the article measured something else. Without any figures left, the article and the base's footnotes on it, and
 * variants that have only published figures, are left out too.
 *
 * Relative paths in `base` are relative to the file that is run. To take some of its variants only, give it as
 * `{ ...base, variants: base.variants.slice(0, 2) }`.
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

/** The variant, without its published figures if they are no longer comparable. */
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
