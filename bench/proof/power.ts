// A known extra cost: nginx against itself with lines of config that do nothing but take time.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { PlanOptions } from '../../lib/runner/make-plan.ts';
import { defineScenario, nginx } from '../../lib/scenario/index.ts';
import type { Scenario, Variant } from '../../lib/scenario/model.ts';
import { load, page } from '../../scenarios/h2o-vs-nginx.ts';
import { noted, runOf, runText, wholeRun, type Lab } from './lab.ts';
import type { Cost, ProofData } from './results.ts';

/** Matches no page, and is tried twice for each request: the page's path is a folder, from which nginx goes on to its index file. */
export const costlyLine = 'rewrite ^/none$ /;';

/** The plain server has one of these lines, since the first costs more than another: it is 3 % of requests/s to have any. */
const plainLines = 1;
/** Shares of the plain server's requests/s. What a line costs differs from machine to machine, so how many lines come to that is found out first. */
const wantedCosts = [0.013, 0.024];
const triedLines = 100;

/** For the smallest cost, in as long as somebody would wait. */
const precise: Partial<PlanOptions> = { precision: 0.005, maxTimeSeconds: 180 };

export const preciseFlags = '--precision 0.5% --max-time 3m';

const plain = 'plain';
const nameOf = (lines: number): string => `lines-${lines}`;

export function linesText(lines: number): string {
  return `${lines} more ${lines === 1 ? 'line' : 'lines'}`;
}

/** The plain server, and one for each number of lines. Their configs' layers are written into `folder`. */
async function scenarioOfCosts(folder: string, costs: readonly number[]): Promise<Scenario> {
  const workers = { workers: 'server-cores', articleWorkers: 16 } as const;
  await mkdir(folder, { recursive: true });
  const variantOf = async (name: string, lines: number): Promise<Variant> => {
    const layer = join(folder, `${name}.conf`);
    await writeFile(layer, costLayer(lines));
    return { name, server: nginx(['base', 'workers', layer], workers) };
  };
  return defineScenario({
    name: 'power',
    title: 'nginx against itself with lines that cost time',
    knob: 'lines',
    load,
    page,
    variants: await Promise.all([
      variantOf(plain, plainLines),
      ...costs.map((lines) => variantOf(nameOf(lines), plainLines + lines)),
    ]),
  });
}

/** A config layer with so many of them. */
export function costLayer(lines: number): string {
  return `http { server { location / {\n${`${costlyLine}\n`.repeat(lines)}} } }\n`;
}

/** How many lines come to that cost: requests/s are 1 / (1 + lines × the time of one, as a share of a request's). @param ratio requests/s with triedLines more */
export function linesFor(cost: number, ratio: number): number {
  return Math.max(1, Math.round((triedLines * (1 / (1 - cost) - 1)) / (1 / ratio - 1)));
}

/** Default runs of all of them beside the plain server, each followed by a precise one of the smallest cost. */
export async function measurePower(
  lab: Lab,
  data: ProofData['power'],
  save: () => Promise<void>,
): Promise<void> {
  const folder = join(lab.scratch, 'costs');
  const tried = runOf(await wholeRun(lab, await scenarioOfCosts(folder, [triedLines])));
  lab.say(`${linesText(triedLines)}: ${runText(tried)}`);
  for (const cost of wantedCosts)
    data.costs.push({ lines: linesFor(cost, tried.ratio), runs: [], precise: [] });
  const scenario = await scenarioOfCosts(
    folder,
    data.costs.map(({ lines }) => lines),
  );
  for (let number = 1; number <= lab.repeats; number++) {
    await noted(lab, async () => {
      const result = await wholeRun(lab, scenario);
      // All of them or none: a run that lacks one counts for none.
      for (const { lines, runs, run } of data.costs.map((cost) => ({
        ...cost,
        run: runOf(result, nameOf(cost.lines)),
      }))) {
        runs.push(run);
        lab.say(`${linesText(lines)}, run ${number} of ${lab.repeats}: ${runText(run)}`);
      }
    });
    await save();
    const [smallest] = data.costs as [Cost, ...Cost[]];
    const run = await noted(lab, async () =>
      runOf(await wholeRun(lab, scenario, precise, [plain, nameOf(smallest.lines)])),
    );
    if (run === undefined) continue;
    smallest.precise.push(run);
    lab.say(
      `${linesText(smallest.lines)}, ${preciseFlags}: ${runText(run)}, ${run.roundRatios.length} rounds`,
    );
    await save();
  }
}
