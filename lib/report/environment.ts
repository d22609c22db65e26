// The machine of a run, and its use by other programs, as tables.
import { noiseOf, type RoundNoise } from '../analysis/limit.ts';
import { wholeRounds } from '../analysis/phases.ts';
import { extent } from '../analysis/statistics.ts';
import { coreCount, counts, duration, percent, whole } from '../format.ts';
import type { Environment } from '../result/environment.ts';
import type { Result } from '../result/result.ts';
import { foundIn } from './found.ts';
import { generatorPlace, resultHeading, serversPlace, sizesText } from './heading.ts';
import { metricWords } from './metric-words.ts';
import { figure, leftColumn, rightColumn, tableOf, type Column, type Table } from './table.ts';

type Fact = [name: string, of: (result: Result) => string];

/** A fact of this machine; '' for a cluster, whose nodes do the work. */
const machine = (name: string, of: (environment: Environment) => string): Fact => [
  name,
  ({ environment }) => (environment.cluster === undefined ? of(environment) : ''),
];

const facts: readonly Fact[] = [
  ['run', ({ run }) => run],
  ['began (UTC)', ({ startedAt }) => instant(startedAt)],
  ['took', (result) => duration(resultHeading(result).seconds)],
  machine('load average before (1, 5, 15 min)', ({ loadAverage }) =>
    loadAverage.map((load) => load.toFixed(2)).join(', '),
  ),
  [
    'rounds',
    ({ variants, state, quick }) => {
      let text = String(wholeRounds(variants));
      if (quick) text += ', short ones (--quick)';
      if (state === 'partial') text += ', ended early';
      return text;
    },
  ],
  [
    'load',
    (result) => {
      const heading = resultHeading(result);
      return [heading.load, sizesText(heading)].filter(Boolean).join(', ');
    },
  ],
  [
    'judged by',
    (result) => {
      const names = new Set(result.comparisons.map(({ metric }) => metricWords[metric].name));
      return foundIn(result)?.judgedBy ?? [...names].join(', ');
    },
  ],
  ['network', (result) => resultHeading(result).network],
  [
    'versions',
    ({ environment: { bakeoff, versions } }) => {
      const programs = Object.entries({ bakeoff, ...versions });
      return programs.map(([name, version]) => `${name} ${version}`).join(', ');
    },
  ],
  machine('processor', ({ cpuModel, cores }) => `${cpuModel}, ${counts(cores, 'core')}`),
  machine('memory', ({ memoryBytes }) => `${(memoryBytes / 2 ** 30).toFixed(1)} GiB`),
  machine('system', ({ os, kernel }) => `${os}, ${kernel}`),
  machine('booted (UTC)', ({ bootedAt }) => instant(bootedAt)),
  machine('CPU governor', ({ governor }) => governor ?? ''),
  ['servers on', ({ environment }) => serversPlace(environment)],
  ['generator on', ({ environment }) => generatorPlace(environment)],
  machine('CPU quota', ({ cpuQuota }) =>
    figure(cpuQuota, (quota) => `the time of ${coreCount(quota)}`),
  ),
];

/** A row per fact. */
export function environmentTable(result: Result): Table {
  return tableOf(facts, [
    leftColumn('environment', ([name]) => name),
    leftColumn('this run', ([, of]) => of(result)),
  ]);
}

/** Other programs' use of the machine, the maximum of the rounds; empty if the kernel does not report it. */
export function noiseTable({ variants }: Result): Table {
  const all = variants.map(({ name, rounds }) => {
    return { name, noises: rounds.flatMap((round) => noiseOf(round) ?? []) };
  });
  const seen = all.filter(({ noises }) => noises.length > 0);
  type Row = (typeof seen)[number];
  const most = (group: string, title: string, of: (noise: RoundNoise) => number): Column<Row> =>
    rightColumn(title, ({ noises }) => percent(extent(noises.map(of))[1]), group);
  const [taken, used] = ['taken by the hypervisor', 'used by others'];
  const [servers, generators] = ["of the server's cores", "of the generator's"];
  return tableOf(seen, [
    leftColumn('variant', ({ name }) => name),
    most(taken, servers, (noise) => noise.serverStealShare),
    most(taken, generators, (noise) => noise.generatorStealShare),
    most(used, servers, (noise) => noise.serverOthersShare),
    most(used, generators, (noise) => noise.generatorOthersShare),
    rightColumn('load average', ({ noises }) =>
      extent(noises.map((noise) => noise.loadAverage))[1].toFixed(2),
    ),
    rightColumn(
      `${servers}, MHz`,
      ({ noises }) => {
        const clocks = noises.flatMap(({ mhz }) => (mhz === null ? [] : [mhz.lowest, mhz.highest]));
        return clocks.length === 0 ? '' : extent(clocks).map(whole).join(' to ');
      },
      'clock',
    ),
  ]);
}

function instant(text: string): string {
  return text.slice(0, 19).replace('T', ' ');
}
