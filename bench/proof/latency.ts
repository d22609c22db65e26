// Whether turns show in latency: a config against itself at a rate, in turns, and the same server loaded alone.
import { change, enumeration } from '../../lib/format.ts';
import { apart, orderOfRound, type Plan } from '../../lib/runner/plan.ts';
import { defineScenario, nginx, vegeta } from '../../lib/scenario/index.ts';
import { smallPage } from '../experiments.ts';
import { inContext, noted, oneRound, type Lab } from './lab.ts';
import type { LatencyRound, ProofData } from './results.ts';
import { inTurnsByAlone, percentiles } from './statistics.ts';

const server = nginx(['base'], { workers: 1 });
const ways = ['alone', 'inTurns'] as const;

export const latencyScenario = defineScenario({
  name: 'latency',
  title: 'latency in turns and alone',
  knob: 'nothing',
  load: vegeta('-http2=false -max-connections=100 -rate=1000 -duration=10s'),
  page: smallPage,
  control: true,
  variants: [
    { name: 'a', server },
    { name: 'again', server },
  ],
});

/** With the first side of the plan and no other, so that nothing takes turns. */
export function aloneIn(plan: Plan): Plan {
  return {
    ...plan,
    groups: apart(plan.groups, new Set(plan.variants.map(({ variant }) => variant.name))).slice(
      0,
      1,
    ),
  };
}

/** Each round has both ways, one right after the other. */
export async function measureLatency(
  lab: Lab,
  data: ProofData['latency'],
  save: () => Promise<void>,
): Promise<void> {
  await inContext(lab, latencyScenario, {}, async (context) => {
    const contexts = { alone: { ...context, plan: aloneIn(context.plan) }, inTurns: context };
    let tried = 0;
    for (let round = 1; round <= lab.repeats; round++) {
      const seen = await noted(lab, async () => {
        const seen: LatencyRound = { alone: [], inTurns: [] };
        for (const way of orderOfRound(ways, round, latencyScenario.name)) {
          tried++;
          const { latencyMs } = await oneRound(contexts[way], tried);
          seen[way] = [...latencyMs.values()].map(({ p50, p99 }) => ({ p50, p99 }));
        }
        return seen;
      });
      if (seen === undefined) continue;
      data.rounds.push(seen);
      lab.say(
        `round ${round} of ${lab.repeats}, in turns by alone: ${enumeration(percentiles.map((name) => `${name} ${change(inTurnsByAlone(seen, name))}`))}`,
      );
      await save();
    }
  });
}
