// Files of a person's own that a scenario names. As in an import, what begins with ./ or ../ is meant from the scenario's
// file, and a bare name is one that is shipped.
import { statSync } from 'node:fs';
import path from 'node:path';
import { byName, present } from '../present.ts';
import type { Scenario, ServerSpec, Variant } from './model.ts';
import { isConfigured } from './variants.ts';

/** Whether a config or docroot is named by its path. */
export function isPath(name: string): boolean {
  return /^(\/|\.{1,2}(\/|$))/.test(name);
}

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
