// What else used the machine while it was measured, round by round.
import { byName } from '../present.ts';
import type { Noise, Round } from '../result/result.ts';
import { extent, total } from './statistics.ts';

/** Time that the hypervisor took is missing in requests/s: from here on it is twice what two equal variants may differ by. */
export const stealMatters = 0.02;

/** Interrupts and the kernel's own work on the server's cores come to a few percent on an idle machine. */
export const othersMatter = 0.05;

/** What the phases of a round saw together: shares as in Noise, `mhz` the lowest clock at an end and the highest at all. */
export interface RoundNoise extends Omit<Noise, 'serverMhz'> {
  mhz: { lowest: number; highest: number } | null;
}

/** null where a phase has none. */
export function noiseOf({ phases }: Round): RoundNoise | null {
  const seen = phases.flatMap(({ noise, seconds }) =>
    noise === null ? [] : [{ ...noise, seconds }],
  );
  if (seen.length === 0 || seen.length < phases.length) return null;
  const seconds = total(seen, (phase) => phase.seconds);
  const share = (of: (noise: Noise) => number): number =>
    seconds === 0 ? 0 : total(seen, (phase) => of(phase) * phase.seconds) / seconds;
  return {
    ...byName(
      ['serverStealShare', 'generatorStealShare', 'serverOthersShare', 'generatorOthersShare'],
      (name) => share((noise) => noise[name]),
    ),
    ...(seen.some(({ upstreamShare }) => upstreamShare !== undefined)
      ? {
          upstreamShare: seen.some(({ upstreamShare }) => upstreamShare === null)
            ? null
            : share(({ upstreamShare }) => upstreamShare ?? 0),
        }
      : {}),
    loadAverage: extent(seen.map((noise) => noise.loadAverage))[1],
    mhz: clockOf(seen),
  };
}

/** A clock that rises in a window did so because the load began; one that falls, or is lower in another window, was held back. */
function clockOf(seen: readonly Noise[]): RoundNoise['mhz'] {
  const clocks = seen.flatMap(({ serverMhz }) => (serverMhz === null ? [] : [serverMhz]));
  if (clocks.length === 0) return null;
  return { lowest: extent(clocks.map(([, end]) => end))[0], highest: extent(clocks.flat())[1] };
}
