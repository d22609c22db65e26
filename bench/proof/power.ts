// A known extra cost: nginx against itself with lines of config that do nothing but take time.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { defineScenario, nginx } from '../../lib/scenario/index.ts';
import type { Scenario, Variant } from '../../lib/scenario/model.ts';
import { load, page } from '../../scenarios/h2o-vs-nginx.ts';
import { noted, runOf, runText, wholeRun, type Lab } from './lab.ts';
import type { ProofData } from './results.ts';

/** Matches no page, and is tried twice for each request: the page's path is a folder, from which nginx goes on to its index file. */
export const costlyLine = 'rewrite ^/none$ /;';

/** The plain server has one of these lines, since the first costs more than another: it is 3 % of requests/s to have any. */
const plainLines = 1;
/** How many more cost about 1, 2, 3 and 5 % of requests/s, where a request costs nginx 15 to 25 µs. */
export const linesOfCosts = [1, 2, 3, 5];

/** Default runs for each one with --precision. */
const runsPerPrecise = 20;

const plain = 'plain';
const nameOf = (lines: number): string => `lines-${lines}`;

export function linesText(lines: number): string {
  return `${lines} more ${lines === 1 ? 'line' : 'lines'}`;
}

/** The plain server, and one for each number of lines. Their configs' layers are written into `folder`. */
async function scenarioOfCosts(folder: string): Promise<Scenario> {
  const workers = { workers: 'server-cores', articleWorkers: 16 } as const;
  await mkdir(folder, { recursive: true });
  const variantOf = async (name: string, lines: number): Promise<Variant> => {
    const layer = join(folder, `${name}.conf`);
    await writeFile(layer, costLayer(lines));
    return { name, server: nginx(['base', 'workers', layer], workers) };
  };
  return defineScenario({
    name: 'power', title: 'nginx against itself with lines that cost time', knob: 'lines', load, page,
    variants: await Promise.all([variantOf(plain, plainLines), ...linesOfCosts.map((lines) => variantOf(nameOf(lines), plainLines + lines))]),
  });
}

/** A config layer with so many of them. */
export function costLayer(lines: number): string {
  return `http { server { location / {\n${`${costlyLine}\n`.repeat(lines)}} } }\n`;
}

/** Default runs of all of them beside the plain server, and now and then one of a pair with --precision. */
export async function measurePower(lab: Lab, data: ProofData['power'], save: () => Promise<void>): Promise<void> {
  const scenario = await scenarioOfCosts(join(lab.scratch, 'costs'));
  for (const lines of linesOfCosts) data.costs.push({ lines, runs: [], precise: [] });
  for (let number = 1; number <= lab.repeats; number++) {
    await noted(lab, async () => {
      const result = await wholeRun(lab, scenario);
      // All of them or none: a run that lacks one counts for none.
      for (const { lines, runs, run } of data.costs.map((cost) => ({ ...cost, run: runOf(result, nameOf(cost.lines)) }))) {
        runs.push(run);
        lab.say(`${linesText(lines)}, run ${number} of ${lab.repeats}: ${runText(run)}`);
      }
    });
    await save();
    if ((number - 1) % runsPerPrecise > 0) continue;
    for (const { lines, precise } of data.costs) {
      const run = await noted(lab, async () => runOf(await wholeRun(lab, scenario, { precision: 0.01 }, [plain, nameOf(lines)])));
      if (run === undefined) continue;
      precise.push(run);
      lab.say(`${linesText(lines)}, --precision 1%: ${runText(run)}, ${run.roundRatios.length} rounds`);
      await save();
    }
  }
}
