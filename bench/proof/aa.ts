// A config against itself, again and again: how often two that are the same are called different, and how narrow intervals are.
import { findScenario } from '../../lib/scenario/catalogue.ts';
import { noted, runOf, runText, wholeRun, type Lab } from './lab.ts';
import type { ProofData } from './results.ts';

export async function measureAa(lab: Lab, data: ProofData['aa'], save: () => Promise<void>): Promise<void> {
  const scenario = await findScenario('aa');
  for (let number = 1; number <= lab.repeats; number++) {
    const run = await noted(lab, async () => runOf(await wholeRun(lab, scenario)));
    if (run === undefined) continue;
    data.runs.push(run);
    lab.say(`run ${number} of ${lab.repeats}: ${runText(run)}`);
    await save();
  }
}
