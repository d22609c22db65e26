// A known extra cost: nginx against itself with config lines that only take time.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { PlanOptions } from '../../lib/runner/make-plan.ts';
import { defineScenario, nginx } from '../../lib/scenario/index.ts';
import type { Scenario, Variant } from '../../lib/scenario/model.ts';
import { load, page } from '../../scenarios/h2o-vs-nginx.ts';
import { noted, runOf, runText, wholeRun, type Lab } from './lab.ts';
import type { Cost, ProofData } from './results.ts';

/**
 * Matches no page. nginx evaluates the line twice per request, because the page's path is a folder, which nginx redirects
 * internally to the index file.
 */
export const costlyLine = 'rewrite ^/none$ /;';

/** The plain server has one of these lines, because the first line alone costs 3 % of requests/s, more than each further line. */
const plainLines = 1;
/**
 * Target costs, as shares of the plain server's requests/s. The cost of a line depends on the machine, so a trial run determines
 * the number of lines.
 */
const wantedCosts = [0.013, 0.024];
const triedLines = 100;

/** For the smallest cost, within a time that a user would wait. */
const precise: Partial<PlanOptions> = { precision: 0.005, maxTimeSeconds: 180 };

export const preciseFlags = '--precision 0.5% --max-time 3m';

const plain = 'plain';
const nameOf = (lines: number): string => `lines-${lines}`;

export function linesText(lines: number): string {
  return `${lines} more ${lines === 1 ? 'line' : 'lines'}`;
}

/** The plain server, and a server for each number of lines. The config layers are written to `folder`. */
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

/** A config layer with this number of costly lines. */
export function costLayer(lines: number): string {
  return `http { server { location / {\n${`${costlyLine}\n`.repeat(lines)}} } }\n`;
}

/**
 * The number of lines with this cost, by ratio = 1 / (1 + lines × time of a line / time of a request). @param ratio of
 * requests/s, with triedLines more lines to without
 */
export function linesFor(cost: number, ratio: number): number {
  return Math.max(1, Math.round((triedLines * (1 / (1 - cost) - 1)) / (1 / ratio - 1)));
}

/** Alternates default runs of all costs with precise runs of the smallest cost, against the plain server. */
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
      // If a run lacks a comparison, runOf throws before any of the run's figures are added.
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
