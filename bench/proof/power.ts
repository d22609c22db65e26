// A known extra cost: nginx against itself with lines of config that do nothing but take time.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { change } from '../../lib/format.ts';
import { defineScenario, nginx } from '../../lib/scenario/index.ts';
import type { Scenario } from '../../lib/scenario/model.ts';
import { load, page } from '../../scenarios/h2o-vs-nginx.ts';
import { noted, runOf, runText, wholeRun, type Lab } from './lab.ts';
import type { ProofData } from './results.ts';
import { ratioOf } from './statistics.ts';

/** Matches no page, and is tried twice for each request: the page's path is a folder, from which nginx goes on to its index file. */
export const costlyLine = 'rewrite ^/none$ /;';

/** How many of these lines cost about 1, 2, 3 and 5 % of requests/s: one is about 1 %, where a request costs nginx 15 µs. */
export const linesOfCosts = [1, 2, 3, 5];

/** Rounds of the long run that says what the lines cost, for each default run. */
const trueRoundsPerRun = 2;
/** Default runs for each one with --precision. */
const runsPerPrecise = 10;

const plain = 'plain';
const nameOf = (lines: number): string => `lines-${lines}`;

export function linesText(lines: number): string {
  return `${lines} ${lines === 1 ? 'line' : 'lines'}`;
}

/** The plain server, and one for each number of lines. Their configs' layers are written into `folder`. */
async function scenarioOfCosts(folder: string): Promise<Scenario> {
  const workers = { workers: 'server-cores', articleWorkers: 16 } as const;
  const base = ['base', 'workers'];
  await mkdir(folder, { recursive: true });
  const costly = await Promise.all(linesOfCosts.map(async (lines) => {
    const layer = join(folder, `${nameOf(lines)}.conf`);
    await writeFile(layer, costLayer(lines));
    return { name: nameOf(lines), server: nginx([...base, layer], workers) };
  }));
  return defineScenario({
    name: 'power', title: 'nginx against itself with lines that cost time', knob: 'lines', load, page,
    variants: [{ name: plain, server: nginx(base, workers) }, ...costly],
  });
}

/** A config layer with so many of them. */
export function costLayer(lines: number): string {
  return `http { server { location / {\n${`${costlyLine}\n`.repeat(lines)}} } }\n`;
}

/** First what the lines cost, in one long run; then default runs of all of them, and now and then one of a pair with --precision. */
export async function measurePower(lab: Lab, data: ProofData['power'], save: () => Promise<void>): Promise<void> {
  const scenario = await scenarioOfCosts(join(lab.scratch, 'costs'));
  const rounds = lab.repeats * trueRoundsPerRun;
  lab.say(`what ${linesOfCosts.join(', ')} lines cost: ${rounds} rounds`);
  const { comparisons } = await wholeRun(lab, scenario, { rounds });
  for (const lines of linesOfCosts) {
    const trueRatios = comparisons.find(({ variant }) => variant === nameOf(lines))?.roundRatios ?? [];
    data.costs.push({ lines, trueRatios, runs: [], precise: [] });
    lab.say(`${linesText(lines)}: ${change(ratioOf(trueRatios).ratio)}`);
  }
  await save();
  for (let number = 1; number <= lab.repeats; number++) {
    const found = await noted(lab, async () => {
      const result = await wholeRun(lab, scenario);
      return data.costs.map(({ lines }) => runOf(result, nameOf(lines)));
    });
    for (const [index, run] of found?.entries() ?? []) data.costs[index]?.runs.push(run);
    if (found !== undefined) lab.say(`run ${number} of ${lab.repeats}: ${found.map((run, index) => `${linesText(linesOfCosts[index] as number)} ${runText(run)}`).join('; ')}`);
    await save();
    if ((number - 1) % runsPerPrecise > 0) continue;
    for (const { lines, precise } of data.costs) {
      const exact = await noted(lab, async () => runOf(await wholeRun(lab, scenario, { precision: 0.01 }, [plain, nameOf(lines)]), nameOf(lines)));
      if (exact === undefined) continue;
      precise.push(exact);
      lab.say(`${linesText(lines)}, --precision 1%: ${runText(exact)}, ${exact.roundRatios.length} rounds`);
      await save();
    }
  }
}
