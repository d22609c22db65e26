// Servers on the machine's loopback, where each reaches the others.
import { warning } from '../report/warnings/run.ts';
import { isRemote } from '../servers/index.ts';
import { isOnLoopback, portOf } from '../servers/strangers.ts';
import { TurnsMeet } from './failures.ts';
import type { Stage } from './plan.ts';

/** Not in a network of its own, nor on another machine. */
export function sharesLoopback({
  enclosure,
  server,
}: Pick<Stage, 'enclosure' | 'server'>): boolean {
  return enclosure === undefined && !isRemote(server) && isOnLoopback(server);
}

/**
 * Requires that no side's server is another's backend: a proxy keeps connections to it, so a load of its code on the other side would look
 * the same. @throws TurnsMeet
 */
export function requireOtherBackends(
  stages: readonly Pick<Stage, 'planned' | 'enclosure' | 'server'>[],
): void {
  const sides = stages.filter(sharesLoopback).map(({ planned, server }) => ({
    name: planned.variant.name,
    port: portOf(server),
    backends: new Set(server.upstreams.flatMap((at) => ('port' in at ? at.port : []))),
  }));
  for (const side of sides) {
    const backend = sides.find((other) => other !== side && side.backends.has(other.port));
    if (backend === undefined) continue;
    const variants = new Set(stages.map(({ planned }) => planned.variant.name));
    throw new TurnsMeet(warning.sideAsBackend(side.name, backend.name, backend.port), variants);
  }
}
