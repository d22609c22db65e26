// What differs between the sides beside what is measured: their configs, servers, loads and answers.
import { responsesOf, summed } from '../../analysis/phases.ts';
import { extent, total } from '../../analysis/statistics.ts';
import { success, whole } from '../../format.ts';
import type { Phase, Result, VariantResult } from '../../result/result.ts';
import { protocolNames } from '../../scenario/protocols.ts';
import { variantLoadText } from '../heading.ts';
import { leftColumn, rightColumn, tableOf } from '../table.ts';
import { configDifferences, type ComposedConfig } from './configs.ts';
import { html, nothing, type Html } from './markup.ts';
import { tableHtml } from './page.ts';

type Fact<Value> = readonly [title: string, of: (side: VariantResult) => Value];

const texts: readonly Fact<string>[] = [
  ['server', ({ server }) => `${server?.name ?? ''} ${server?.version ?? ''}`.trim()],
  ['load', (side) => `${protocolNames(side.load.protocol)}, ${variantLoadText(side)}`],
  ['status', statusText],
];
/** Of an answer on average. */
const bytes: readonly Fact<number>[] = [
  ['body', perAnswer((phase) => phase.bytes.body)],
  ['headers', perAnswer((phase) => phase.bytes.headersDecoded)],
];

/** Means of several pages are as near as this to each other. */
const near = 0.002;

/** @param notes further differences, a line each */
export function differencesHtml(
  { variants, comparisons }: Result,
  configs: readonly ComposedConfig[],
  notes: Html,
): Html {
  const sides = variants.filter(({ rounds }) => rounds.length > 0);
  const [first] = sides;
  if (first === undefined || sides.length < 2) return notes;
  const written: Fact<string> = [
    'config',
    ({ server }) => (configs.length > 0 ? '' : (server?.config.join(' ') ?? '')),
  ];
  const differing = [
    ...[written, ...texts]
      .filter(([, of]) => new Set(sides.map(of)).size > 1)
      .map(([title, of]) => leftColumn(title, of)),
    ...bytes
      .filter(([, of]) => {
        const [least, most] = extent(sides.map(of));
        return most > least * (1 + near);
      })
      .map(([title, of]) => rightColumn(`B of ${title}`, (side: VariantResult) => whole(of(side)))),
  ];
  const isAlike = !differing.some(({ title }) => title === 'status' || title.startsWith('B of '));
  return html`<section><h2>What differs</h2>
${configDifferences({ variants, comparisons }, configs)}${tableHtml(tableOf(sides, [leftColumn('side', ({ name }) => name), ...differing]), 'what differs')}${
    isAlike
      ? html`<p>All sides answer alike: ${[statusText(first), ...bytes.map(([title, of]) => `${whole(of(first))} B of ${title}`)].join(', ')}.</p>\n`
      : nothing
  }${notes}</section>`;
}

/** Each status, or its class, and its share of the answers where there are several. */
function statusText({ rounds }: VariantResult): string {
  const phases = rounds.flatMap((round) => round.phases);
  const statuses = Object.entries(summed(phases.map((phase) => phase.statuses ?? {})));
  const found = Object.entries(summed(phases.map(({ responses }) => responses))).flatMap(
    ([name, count]): [string, number][] => {
      const own = statuses.filter(([status]) => status[0] === name[0]);
      return total(own, ([, times]) => times) === count ? own : [[name, count]];
    },
  );
  const all = total(found, ([, count]) => count);
  return all === 0
    ? 'none'
    : found
        .map(([name, count]) => (found.length === 1 ? name : `${name} ${success(count / all)}`))
        .join(', ');
}

/** 0 without any. */
function perAnswer(of: (phase: Phase) => number): (side: VariantResult) => number {
  return ({ rounds }) => {
    const phases = rounds.flatMap((round) => round.phases);
    return total(phases, of) / Math.max(1, total(phases, responsesOf));
  };
}
