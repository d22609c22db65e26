// The same effect, and none, by the length of a turn, and as wrk sees both.
import { change } from '../../lib/format.ts';
import { orderOfRound } from '../../lib/runner/plan.ts';
import type { RunContext } from '../../lib/runner/round-types.ts';
import { defineScenario, nginx } from '../../lib/scenario/index.ts';
import { load, page } from '../../scenarios/h2o-vs-nginx.ts';
import { wrk } from '../contenders.ts';
import { inContext, noted, oneRound, ratioIn, type Lab } from './lab.ts';
import { peerTurns } from './peer-turns.ts';
import type { ProofData, Seen } from './results.ts';
import { ratioOf } from './statistics.ts';

export const sliceMilliseconds = [2, 5, 10, 20, 50, 100, 1000];

/** Long enough that each side has several of the longest turns. */
const durationSeconds = 2;

/** For each round of the turns, in the same minutes. 8 rounds have about as many as a person would wait for. */
const wrkPairsPerRound = 6;

const workers = { workers: 'server-cores', articleWorkers: 16 } as const;
const [plain, again, cached] = ['plain', 'again', 'open-file-cache'] as const;
const scenario = defineScenario({
  name: 'slices',
  title: 'open_file_cache, and nothing, by the length of a turn',
  knob: 'open_file_cache',
  load,
  page,
  control: true,
  variants: [
    { name: plain, server: nginx(['base', 'workers'], workers) },
    { name: again, server: nginx(['base', 'workers'], workers) },
    { name: cached, server: nginx(['base', 'workers', 'open-file-cache'], workers) },
  ],
});

/** Each round has all lengths in another order, and wrk. */
export async function measureSlices(
  lab: Lab,
  data: ProofData['slices'],
  save: () => Promise<void>,
): Promise<void> {
  for (const milliseconds of sliceMilliseconds)
    data.slices.push({ milliseconds, effect: [], control: [] });
  await inContext(lab, scenario, { durationSeconds }, async (context) => {
    let tried = 0;
    for (let round = 1; round <= lab.repeats; round++) {
      for (const seen of orderOfRound(data.slices, round, 'slices')) {
        tried++;
        const number = tried;
        const outcome = await noted(lab, () =>
          oneRound(inSlices(context, seen.milliseconds), number),
        );
        if (outcome === undefined) continue;
        add(seen, outcome.rps);
        lab.say(`round ${round} of ${lab.repeats}, ${seen.milliseconds} ms: ${lastOf(seen)}`);
        await save();
      }
      await noted(lab, async () => {
        for (const { rps } of await peerTurns(lab, scenario, wrk, wrkPairsPerRound, `wrk ${round}`))
          add(data.wrk, rps);
      });
      await save();
      lab.say(
        `round ${round} of ${lab.repeats}, wrk, ${data.wrk.effect.length} pairs: open_file_cache ${change(ratioOf(data.wrk.effect).ratio)}`,
      );
    }
  });
}

function inSlices(context: RunContext, milliseconds: number): RunContext {
  const groups = context.plan.groups.map((group) => ({
    ...group,
    sliceSeconds: milliseconds / 1000,
  }));
  return { ...context, plan: { ...context.plan, groups } };
}

function add({ effect, control }: Seen, rps: ReadonlyMap<string, number>): void {
  effect.push(ratioIn(rps, cached, plain));
  control.push(ratioIn(rps, again, plain));
}

function lastOf({ effect, control }: Seen): string {
  return `open_file_cache ${change(effect.at(-1) as number)}, nothing ${change(control.at(-1) as number)}`;
}
