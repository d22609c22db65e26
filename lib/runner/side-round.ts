// A side in a round, from its load to its outcome.
import { roundRps } from '../analysis/phases.ts';
import { alarmsIn, type LogAlarms } from '../servers/lifecycle.ts';
import { isRemote, isStarted } from '../servers/index.ts';
import type { DroppedRound, Phase } from '../result/result.ts';
import { phasesOf } from './measured-phases.ts';
import type { Plan, Stage, VariantRound } from './plan.ts';
import type { Measurement } from './under-load.ts';

/** A side's server, what was measured of it, its phases, and what its log says. */
export interface SideRound extends Measurement {
  phases: Phase[];
  alarms: LogAlarms;
}

/** Returns the sides of a group after a load. Their servers still run: the end of one writes to its log too. */
export async function sideRoundsOf(
  measured: readonly Measurement[],
  plan: Plan,
): Promise<SideRound[]> {
  // The use of cores by others is read where the servers are, and here.
  const othersAreKnown = measured.every(({ stage }) => stage.server.atAddress === undefined);
  return Promise.all(
    measured.map(async (measurement) => ({
      ...measurement,
      phases: phasesOf(measurement, plan, othersAreKnown),
      alarms: await alarmsOf(measurement.stage),
    })),
  );
}

/** Returns requests/s by variant; none for loads in steps, whose rates differ. */
export function rpsOf(
  { stepped }: Pick<Plan, 'stepped'>,
  measured: Iterable<readonly [variant: string, Pick<VariantRound, 'phases'>]>,
): DroppedRound['rps'] {
  const rps: Record<string, number> = {};
  if (stepped !== undefined) return rps;
  for (const [variant, { phases }] of measured) rps[variant] = roundRps(phases);
  return rps;
}

async function alarmsOf({ planned: { variant }, server }: Stage): Promise<LogAlarms> {
  if (isStarted(server)) return alarmsIn(server.logFile, variant.server.name);
  return isRemote(server) ? server.alarms() : {};
}
