// One comparison over all kept runs, as tables and sentences.
import { effectsOf, ofRun, pooled, type KeptEffect } from './history.ts';
import { effect, percent, whole } from '../../format.ts';
import type { Result } from '../../result/result.ts';
import { leftColumn, rightColumn, tableOf, type Part } from '../../report/table.ts';

/** A part for each pair of variants that was compared. @param results of one scenario, the oldest first */
export function historyParts(results: readonly Result[]): Part[] {
  return [...effectsOf(results)].map(([what, effects]) => {
    const boots = [...new Set(effects.map(({ boot }) => boot))];
    const table = tableOf(effects, [
      leftColumn('run', ({ run }) => run),
      rightColumn('boot', ({ boot }) => whole(boots.indexOf(boot) + 1)),
      rightColumn('rounds', ({ roundRatios }) => whole(roundRatios.length)),
      rightColumn('effect', (keptEffect) => {
        const { ratio, interval } = ofRun(keptEffect);
        return effect(ratio, interval);
      }),
    ]);
    return { title: `${what}:`, tables: [table], below: [pooledLine(effects)] };
  });
}

function pooledLine(effects: readonly KeptEffect[]): string {
  if (effects.length < 2)
    return 'One run: what differs between boots of this machine is in no interval.';
  const { ratio, interval, between, unit, units } = pooled(effects);
  const mean = `Over ${units} ${unit}s: ${effect(ratio, interval)}`;
  const spread = `${unit}s differ by ±${percent(between)} (standard deviation) beyond what their rounds differ by`;
  if (unit === 'boot') return `${mean}; ${spread}.`;
  return `${mean}; ${spread}. All are of one boot: what differs between boots is in no interval.`;
}
