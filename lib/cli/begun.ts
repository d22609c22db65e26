// A run whose servers are started before there is a plan, since what they answer is part of it.
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { BegunServer } from '../runner/round-types.ts';
import { runName } from '../runner/plan.ts';
import { createRunFolder } from '../runner/results-folder.ts';

/** The run's name and folder, and its servers that run, by variant. */
export interface Begun { startedAt: Date; run: string; folder: string; servers: Map<string, BegunServer> }

/** Makes the folder in `out`. @param scenario its name */
export async function begin(out: string, scenario: string): Promise<Begun> {
  const startedAt = new Date();
  return { startedAt, ...await createRunFolder(out, runName(scenario, startedAt)), servers: new Map() };
}

/** Ends the servers that no round has taken over, and removes the folder if nothing was measured. May be called twice. */
export async function endBegun({ folder, servers }: Begun): Promise<void> {
  await Promise.all([...servers.values()].map(({ server }) => server.stop()));
  // That it stays is no reason to hide why the run ended.
  if (!existsSync(join(folder, 'result.json'))) await rm(folder, { recursive: true, force: true }).catch(() => undefined);
}
