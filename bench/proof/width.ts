// Alternating against sequential rounds of the same pair in the same minutes: how wide the interval is after so much time.
import { apart } from '../../lib/runner/plan.ts';
import type { RunContext } from '../../lib/runner/round-types.ts';
import { findScenario } from '../../lib/scenario/catalogue.ts';
import { halfWidth } from '../../lib/analysis/statistics.ts';
import { percent } from '../../lib/format.ts';
import { inContext, noted, timedRound, type Lab } from './lab.ts';
import type { ProofData } from './results.ts';
import { ratioOf } from './statistics.ts';

/** One server after the other, each alone for 10 s: a round as the articles' authors, and this project until it alternated, made it. */
const sequentialSeconds = 10;

/** A sequential round, and then alternating ones for as long. */
export async function measureWidth(
  lab: Lab,
  data: ProofData['width'],
  save: () => Promise<void>,
): Promise<void> {
  const scenario = await findScenario('nginx-open-file-cache');
  await inContext(lab, scenario, {}, (alternating) =>
    inContext(lab, scenario, { durationSeconds: sequentialSeconds }, async (long) => {
      const alone = new Set(long.plan.variants.map(({ variant }) => variant.name));
      const sequential: RunContext = {
        ...long,
        plan: { ...long.plan, groups: apart(long.plan.groups, alone) },
      };
      for (let block = 1; block <= lab.repeats; block++) {
        const slow = await noted(lab, () => timedRound(sequential, data.sequential.length + 1));
        if (slow === undefined) continue;
        data.sequential.push(slow);
        let seconds = 0;
        while (seconds < slow.seconds) {
          const quick = await noted(lab, () =>
            timedRound(alternating, data.alternating.length + 1),
          );
          if (quick === undefined) continue;
          data.alternating.push(quick);
          seconds += quick.seconds;
        }
        await save();
        const width = (rounds: readonly { ratio: number }[]): string =>
          rounds.length < 2
            ? 'no interval yet'
            : `±${percent(halfWidth(ratioOf(rounds.map(({ ratio }) => ratio))))}`;
        lab.say(
          `block ${block} of ${lab.repeats}: sequential ${width(data.sequential)} after ${data.sequential.length} rounds, alternating ${width(data.alternating)} after ${data.alternating.length}`,
        );
      }
    }),
  );
}
