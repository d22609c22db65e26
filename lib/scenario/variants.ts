// What a variant takes from its scenario, and a scenario's variants at several rates.
import path from 'node:path';
import { whole } from '../format.ts';
import { fitLoad, type FitOptions, type Load } from './load.ts';
import { commandWords } from './load/shell-words.ts';
import type {
  ConfiguredServer,
  LoadProfile,
  NetworkSpec,
  Page,
  Scenario,
  ServerSpec,
  Variant,
} from './model.ts';

/** A variant that can be measured here. */
export interface RunnableVariant extends Variant {
  server: ServerSpec;
}

/** False for one whose figures are published only. */
export function isRunnable(variant: Variant): variant is RunnableVariant {
  return typeof variant.server !== 'string';
}

/** Whether it is one of the servers that the suite knows, with a config, whole or composed. */
export function isConfigured(server: ServerSpec): server is ConfiguredServer {
  return server.name !== 'command' && server.name !== 'address';
}

/** Whether what it serves is a person's own, and theirs to say. */
export function isOwn(server: ServerSpec): boolean {
  return !isConfigured(server) || server.asIs !== undefined;
}

/** What it runs, as results name it: a config's files, a command, an address. */
export function configOf(server: ServerSpec): readonly string[] {
  if (isConfigured(server)) return server.config;
  return [server.name === 'command' ? server.command : server.origin];
}

/** What results call it: the server, a command's program, an address without its scheme. */
export function programOf(server: ServerSpec): string {
  if (isConfigured(server)) return server.name;
  return server.name === 'command'
    ? path.basename(commandWords(server.command, 0)[0] as string)
    : new URL(server.origin).host;
}

/** The name of the variant that this one's ratio is taken against; undefined for a baseline. */
export function baselineName(scenario: Scenario, variant: Variant): string | undefined {
  const [first] = scenario.variants;
  if (variant.against === null) return undefined;
  return variant.against ?? (variant === first ? undefined : first?.name);
}

/** The variant's own load, or the scenario's. */
export function loadOf(scenario: Scenario, variant: Variant): LoadProfile {
  return variant.load ?? scenario.load;
}

/** The variant's own page, or the scenario's. */
export function pageOf(scenario: Scenario, variant: Variant): Page {
  return variant.page ?? scenario.page;
}

/** The variant's own network, or the scenario's; undefined: loopback. */
export function networkOf(scenario: Scenario, variant: Variant): NetworkSpec | undefined {
  return variant.network ?? scenario.network;
}

/** The variant's load, fitted as by fitLoad. Equal counts stay equal with `quick`: a handshake weighs less where more requests share it. */
export function fitVariantLoad(scenario: Scenario, variant: Variant, options: FitOptions): Load {
  const profile = loadOf(scenario, variant);
  const load = fitLoad(profile, options);
  if (load.requests === undefined || load.rate !== undefined) return load;
  const beside = scenario.variants
    .filter(isRunnable)
    .map((one) => loadOf(scenario, one))
    .filter(({ requests }) => requests === profile.requests);
  return {
    ...load,
    requests: Math.max(load.requests, ...beside.map((one) => fitLoad(one, options).requests ?? 0)),
  };
}

/** Of a load at a rate, as vegeta's -duration=10s; shortened as that is. */
const secondsAtRate = 10;

/** A sweep: a variant for each of `shown` and each rate (requests/s), against its baseline at that rate. Published figures are left out. */
export function atRates(
  scenario: Scenario,
  shown: readonly Variant[],
  rates: readonly number[],
): Scenario {
  const { alsoCompare: _, within: __, ...rest } = scenario;
  const variants = rates.flatMap((rate) =>
    shown.filter(isRunnable).map((variant): Variant => {
      const { published: ___, ...own } = variant;
      const against = baselineName(scenario, variant);
      return {
        ...own,
        name: nameAt(variant.name, rate),
        series: variant.name,
        load: atRate(loadOf(scenario, variant), rate),
        against: against === undefined ? null : nameAt(against, rate),
      };
    }),
  );
  return { ...rest, variants };
}

/** What a variant of a sweep is called. */
export function nameAt(variant: string, rate: number): string {
  return `${variant}-at-${rate}`;
}

function atRate(
  { durationSeconds: _, secondsHere: __, ...profile }: LoadProfile,
  rate: number,
): LoadProfile {
  return {
    ...profile,
    command: `${profile.command} at ${whole(rate)} requests/s`,
    rate,
    requests: Math.max(1, Math.round(rate * secondsAtRate)),
  };
}

/** Whether a config or docroot is named by its path. */
export function isPath(name: string): boolean {
  return /^(\/|\.{1,2}(\/|$))/.test(name);
}
