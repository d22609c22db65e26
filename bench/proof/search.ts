// Searches for the highest rate within a limit, with a config against itself: how often the two are called different, and how many
// loads at the rate that was found keep the limit.
import { geometricMean } from '../../lib/analysis/statistics.ts';
import { orderOfRound } from '../../lib/runner/plan.ts';
import { turnsSeconds } from '../../lib/scenario/load.ts';
import type { Scenario, Within } from '../../lib/scenario/model.ts';
import { measureAgainstItself } from './aa.ts';
import { inContext, oneRound, type Lab } from './lab.ts';
import type { LoadsAfter, ProofData, Run } from './results.ts';

/** Pauses of a virtual machine alone do not break it. */
export const searchedWithin: Within = { metric: 'p99', ms: 10 };

/** Of what was found. */
const shares = [0.9, 0.95, 1, 1.05, 1.1];
const roundsAfter = 3;
/** As long as a step of the search. */
export const loadSeconds = turnsSeconds.step;

export function measureSearch(
  lab: Lab,
  data: ProofData['search'],
  save: () => Promise<void>,
): Promise<void> {
  return measureAgainstItself(
    lab,
    data,
    save,
    { within: data.within, quick: true },
    async (run, scenario) => {
      const loads = await loadsAfter(lab, scenario, run, data.within);
      data.loads.push(...loads);
      lab.say(loads.map(({ share, kept, of }) => `at ${share}: ${kept} of ${of} kept`).join(' · '));
    },
  );
}

/** Some loads of both sides at each share of the rate found, in another order in each round. */
async function loadsAfter(
  lab: Lab,
  scenario: Scenario,
  { rps, startedAt }: Run,
  { metric, ms }: Within,
): Promise<LoadsAfter[]> {
  const found = geometricMean(rps);
  const loads = shares.map((share): LoadsAfter => ({ share, kept: 0, of: 0 }));
  for (let round = 1; round <= roundsAfter; round++) {
    for (const load of orderOfRound(loads, round, startedAt)) {
      await inContext(
        lab,
        scenario,
        { rates: [Math.round(load.share * found)], durationSeconds: loadSeconds },
        async (context) => {
          // What was due and not answered has waited until the end, and is in the latency.
          for (const latencyMs of (await oneRound(context, round)).latencyMs.values()) {
            load.kept += latencyMs[metric] <= ms ? 1 : 0;
            load.of++;
          }
        },
      );
    }
  }
  return loads;
}
