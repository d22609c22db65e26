// The parts of a variant, with the scenario's as defaults.
import path from 'node:path';
import { fitLoad, type FitOptions, type Load } from './load.ts';
import { shownCommand } from '../secrets.ts';
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

/** False for a variant with published figures only. */
export function isRunnable(variant: Variant): variant is RunnableVariant {
  return typeof variant.server !== 'string';
}

/** Returns whether it is one of serverNames with a config. */
export function isConfigured(server: ServerSpec): server is ConfiguredServer {
  return server.name !== 'command' && server.name !== 'address';
}

/** Returns whether its config, command or address is the user's own, which decides its page. */
export function isOwn(server: ServerSpec): boolean {
  return !isConfigured(server) || server.asIs !== undefined;
}

/** The config's files, the command without credentials, or the address. */
export function configOf(server: ServerSpec): readonly string[] {
  if (isConfigured(server)) return server.config;
  return [server.name === 'command' ? shownCommand(server.command) : server.origin];
}

/** The name of the server or of a command's program, or the host of an address. */
export function programOf(server: ServerSpec): string {
  if (isConfigured(server)) return server.name;
  if (server.name === 'command') return path.basename(commandWords(server.command, 0)[0]);
  return new URL(server.origin).host;
}

/** The name of the variant's baseline; undefined for a baseline. */
export function baselineName(scenario: Scenario, variant: Variant): string | undefined {
  const [first] = scenario.variants;
  if (variant.against === null) return undefined;
  return variant.against ?? (variant === first ? undefined : first?.name);
}

export function loadOf(scenario: Scenario, variant: Variant): LoadProfile {
  return variant.load ?? scenario.load;
}

export function pageOf(scenario: Scenario, variant: Variant): Page {
  return variant.page ?? scenario.page;
}

/** undefined: loopback. */
export function networkOf(scenario: Scenario, variant: Variant): NetworkSpec | undefined {
  return variant.network ?? scenario.network;
}

/** Returns whether a config or docroot is a path, and not a name. */
export function isPath(name: string): boolean {
  return /^(\/|\.{1,2}(\/|$))/.test(name);
}

/** Fits as fitLoad. Variants with equal counts of requests keep equal counts, since more requests share a handshake. */
export function fitVariantLoad(scenario: Scenario, variant: Variant, options: FitOptions): Load {
  const profile = loadOf(scenario, variant);
  const load = fitLoad(profile, options);
  if (load.requests === undefined || load.rate !== undefined) return load;
  let { requests } = load;
  for (const other of scenario.variants.filter(isRunnable)) {
    const otherProfile = loadOf(scenario, other);
    if (otherProfile.requests === profile.requests)
      requests = Math.max(requests, fitLoad(otherProfile, options).requests ?? 0);
  }
  return { ...load, requests };
}
