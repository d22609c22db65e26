// What runs at addresses: may it be loaded, and what a person has to know of it before it is.
import { UserError } from '../errors.ts';
import { byText } from '../report/sentences.ts';
import type { PlanDraft } from '../runner/planned.ts';
import type { ServerSpec } from '../scenario/model.ts';
import { isLoopback } from '../servers/index.ts';

/**
 * Nothing beyond this machine is loaded that was not named for it.
 * @param hosts that the person names once more, by `--host`
 * @throws UserError (exit code 2)
 */
export function requirePermission(servers: readonly ServerSpec[], hosts: readonly string[]): void {
  const others = servers.flatMap((server) => (server.name === 'address' ? [{ origin: server.origin, host: plain(new URL(server.origin).hostname) }] : [])).filter(({ host }) => !isLoopback(host));
  const allowed = hosts.map(plain);
  const open = others.find(({ host }) => !allowed.includes(host));
  if (open !== undefined) throw new UserError(`${open.origin} is not on this machine: add --host ${open.host} if you may load it`, 2);
  const idle = hosts.find((host) => !others.some((other) => other.host === plain(host)));
  if (idle !== undefined) throw new UserError(`--host ${idle}: no side is an address there beyond this machine`, 2);
}

const plain = (host: string): string => host.toLowerCase().replace(/^\[|\]$/g, '');

/** One line for each address. */
export function addressLines({ variants }: Pick<PlanDraft, 'variants'>): string[] {
  return byText(variants.flatMap(({ variant: { name, server }, load: { connections } }) => (
    server.name === 'address' ? [{ name, text: `what runs at ${server.origin} is loaded with ${connections} connections, and neither stopped nor ended` }] : []
  )));
}
