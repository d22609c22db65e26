// What a run was made on, and what else went on there, as tables.
import { metricNames } from '../analysis/latency.ts';
import { type RoundNoise, noiseOf } from '../analysis/limit.ts';
import { wholeRounds } from '../analysis/phases.ts';
import { extent, groupedBy } from '../analysis/statistics.ts';
import { limitText } from '../analysis/within.ts';
import { coreCount, counts, duration, percent, whole } from '../format.ts';
import {
  generatorPlace,
  resultHeading,
  serversPlace,
  sizesText,
  variantLoadText,
} from './heading.ts';
import { linkText } from './network.ts';
import { type Column, type Table, leftColumn, rightColumn, tableOf } from './table.ts';
import type { Result, VariantResult } from '../result/result.ts';

/** `each`: of one variant, where `of` names not all of them, or none. */
interface Fact {
  name: string;
  of(result: Result): string;
  each?(variant: VariantResult): string;
}

/** Of the machine that is measured: one that had it done in a cluster is none. */
function ofMachine(of: Fact['of']): Fact['of'] {
  return (result) => (result.environment.cluster === undefined ? of(result) : '');
}

const facts: readonly Fact[] = [
  { name: 'run', of: ({ run }) => run },
  { name: 'began (UTC)', of: ({ startedAt }) => instant(startedAt) },
  {
    name: 'took',
    of: ({ startedAt, endedAt }) => duration((Date.parse(endedAt) - Date.parse(startedAt)) / 1000),
  },
  {
    name: 'rounds',
    of: ({ variants, state, quick }) =>
      `${wholeRounds(variants)}${quick ? ', short ones (--quick)' : ''}${state === 'partial' ? ', ended early' : ''}`,
  },
  {
    name: 'load',
    of: (result) => {
      const heading = resultHeading(result);
      return [heading.load, sizesText(heading)].filter((text) => text !== '').join(', ');
    },
    each: (variant) => `${variant.load.protocol} ${variantLoadText(variant)}`,
  },
  {
    name: 'judged by',
    of: ({ search, comparisons }) =>
      search === undefined
        ? [...new Set(comparisons.map(({ metric }) => metricNames[metric]))].join(', ')
        : `the highest rate with ${limitText(search.within)}`,
  },
  {
    name: 'network',
    of: (result) => resultHeading(result).network,
    each: ({ network }) => (network === null ? '' : linkText(network.spec)),
  },
  // Not shown: how many workers a command has is not known, and configs are in the pages of single runs.
  { name: 'workers', of: () => '', each: ({ server }) => String(server?.workers) },
  { name: 'configs', of: () => '', each: ({ server }) => server?.config.join(' ') ?? '' },
  {
    name: 'versions',
    of: ({ environment }) =>
      [
        `bakeoff ${environment.bakeoff}`,
        ...Object.entries(environment.versions).map(([name, version]) => `${name} ${version}`),
      ].join(', '),
  },
  {
    name: 'processor',
    of: ofMachine(
      ({ environment: { cpuModel, cores } }) => `${cpuModel}, ${counts(cores, 'core')}`,
    ),
  },
  {
    name: 'memory',
    of: ofMachine(({ environment }) => `${(environment.memoryBytes / 2 ** 30).toFixed(1)} GiB`),
  },
  { name: 'system', of: ofMachine(({ environment: { os, kernel } }) => `${os}, ${kernel}`) },
  { name: 'booted (UTC)', of: ofMachine(({ environment }) => instant(environment.bootedAt)) },
  { name: 'CPU governor', of: ofMachine(({ environment }) => environment.governor ?? '') },
  { name: 'servers on', of: ({ environment }) => serversPlace(environment) },
  { name: 'generator on', of: ({ environment }) => generatorPlace(environment) },
  {
    name: 'CPU quota',
    of: ofMachine(({ environment: { cpuQuota } }) =>
      cpuQuota === undefined ? '' : `the time of ${coreCount(cpuQuota)}`,
    ),
  },
  {
    name: 'load average before (1, 5, 15 min)',
    of: ofMachine(({ environment }) =>
      environment.loadAverage.map((load) => load.toFixed(2)).join(', '),
    ),
  },
];

/** A row per fact, a column per run. `titles` are those of the columns. */
export function environmentTable(results: readonly Result[], titles: readonly string[]): Table {
  return tableOf(facts, [
    leftColumn('environment', ({ name }) => name),
    ...results.map((result, index) =>
      leftColumn(titles[index] ?? '', ({ of }: Fact) => of(result)),
    ),
  ]);
}

/** The facts in which runs differ, those that always do left out. */
export function differingFacts(results: readonly Result[]): string[] {
  const always = ['run', 'began (UTC)', 'took', 'load average before (1, 5, 15 min)'];
  const differ = (texts: readonly string[]): boolean => new Set(texts).size > 1;
  const variants = [
    ...groupedBy(
      results.flatMap((result) => result.variants),
      ({ name }) => name,
    ).values(),
  ];
  return facts
    .filter(
      ({ name, of, each }) =>
        !always.includes(name) &&
        (differ(results.map(of)) ||
          (each !== undefined && variants.some((same) => differ(same.map(each))))),
    )
    .map(({ name }) => name);
}

/** What else used the machine, the most of any round. Empty where the kernel does not tell. */
export function noiseTable({ variants }: Result): Table {
  const seen = variants.flatMap((variant) => {
    const noises = variant.rounds.flatMap((round) => noiseOf(round) ?? []);
    return noises.length === 0 ? [] : [{ variant, noises }];
  });
  type Row = { variant: VariantResult; noises: RoundNoise[] };
  const most = (group: string, title: string, of: (noise: RoundNoise) => number): Column<Row> =>
    rightColumn(title, ({ noises }) => percent(extent(noises.map(of))[1]), { group });
  return tableOf<Row>(seen, [
    leftColumn('variant', ({ variant }) => variant.name),
    most('taken by the hypervisor', "of the server's cores", (noise) => noise.serverStealShare),
    most('taken by the hypervisor', "of the generator's", (noise) => noise.generatorStealShare),
    most('used by others', "of the server's cores", (noise) => noise.serverOthersShare),
    most('used by others', "of the generator's", (noise) => noise.generatorOthersShare),
    rightColumn('load average', ({ noises }) =>
      extent(noises.map(({ loadAverage }) => loadAverage))[1].toFixed(2),
    ),
    rightColumn(
      "of the server's cores, MHz",
      ({ noises }) => {
        const clocks = noises.flatMap(({ mhz }) => mhz ?? []);
        return clocks.length === 0
          ? ''
          : `${whole(extent(clocks.map(({ lowest }) => lowest))[0])} to ${whole(extent(clocks.map(({ highest }) => highest))[1])}`;
      },
      { group: 'clock' },
    ),
  ]);
}

function instant(text: string): string {
  return text.slice(0, 19).replace('T', ' ');
}
