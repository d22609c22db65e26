// What differs between the sides of a run besides the figures: servers, loads and answers.
import { answersByStatus, phasesIn, responsesOf } from '../analysis/phases.ts';
import { extent, total } from '../analysis/statistics.ts';
import { success, whole } from '../format.ts';
import type { Phase, VariantResult } from '../result/result.ts';
import { variantLoadText, variantProtocol } from './heading.ts';
import { leftColumn, rightColumn, tableOf, type Column, type Table } from './table.ts';
import type { Page } from '../scenario/model.ts';
import type { Answer } from '../servers/server.ts';

/** Means of several pages differ by this share without meaning. */
const near = 0.002;

const ofAnswers = new Set(['status', 'compression', 'type']);

/**
 * Returns a row for each side, with the columns that differ. `alike`: all answers, if they do not differ.
 * @param sides two or more that ran
 */
export function answersOfRun(
  sides: readonly VariantResult[],
  withConfigs: boolean,
): { table: Table; alike?: string } {
  const first = sides[0] as VariantResult;
  const areCommands = sides.every(({ server }) => server?.version === '' && !server.atAddress);
  const factColumns: Column<VariantResult>[] = [
    leftColumn(areCommands ? 'command' : 'config', ({ server }) =>
      withConfigs ? (server?.config.join(' ') ?? '') : '',
    ),
    leftColumn('server', ({ server }) => `${server?.name ?? ''} ${server?.version ?? ''}`.trim()),
    leftColumn('load', (side) => `${variantProtocol(side)}, ${variantLoadText(side)}`),
    leftColumn('status', statusText),
    leftColumn('compression', ({ answer }) => (answer ? compressionText(answer) : '')),
    leftColumn('type', ({ answer }) => (answer ? typeText(answer) : '')),
  ];
  const facts = factColumns.filter(({ cell }) => new Set(sides.map(cell)).size > 1);
  const bytes = (['body', 'headersDecoded'] as const).map((part) => {
    const bytesOf = (side: VariantResult) => perAnswer(side, ({ bytes }) => bytes[part]);
    const title = part === 'body' ? 'B of body' : 'B of headers';
    const [least, most] = extent(sides.map(bytesOf));
    const column = rightColumn(title, (side: VariantResult) => whole(bytesOf(side)));
    return {
      column,
      text: `${whole(bytesOf(first))} ${title}`,
      differs: most > least * (1 + near),
    };
  });
  const differing = bytes.filter(({ differs }) => differs);
  const table = tableOf(sides, [
    leftColumn('side', ({ name }) => name),
    ...facts,
    ...differing.map(({ column }) => column),
  ]);
  if (differing.length > 0 || facts.some(({ title }) => ofAnswers.has(title))) return { table };
  return { table, alike: [statusText(first), ...bytes.map(({ text }) => text)].join(', ') };
}

function statusText({ rounds }: VariantResult): string {
  const phases = phasesIn(rounds);
  const statuses = answersByStatus(phases);
  const all = total(statuses, ([, count]) => count);
  if (all === 0) return 'none';
  const [first, ...others] = statuses;
  if (first !== undefined && others.length === 0) return first[0];
  return statuses.map(([name, count]) => `${name} ${success(count / all)}`).join(', ');
}

function perAnswer({ rounds }: VariantResult, of: (phase: Phase) => number): number {
  const phases = phasesIn(rounds);
  return total(phases, of) / Math.max(1, total(phases, responsesOf));
}

/** A side and its answer. `given` names it in sentences. */
export interface Answered {
  name: string;
  given: string;
  page: Pick<Page, 'path' | 'requests'>;
  answer: Answer;
}

/** The title of the table of differences. */
export const differencesTitle = 'The sides differ in this, which may be a part of the result:';

export const answerColumns = {
  status: leftColumn('status', ({ answer: { status } }: Answered) => String(status)),
  compression: leftColumn('compression', ({ answer }: Answered) => compressionText(answer)),
  bytes: rightColumn('B of body', ({ answer: { bytes } }: Answered) => whole(bytes)),
  type: leftColumn('type', ({ answer }: Answered) => typeText(answer)),
};

const compressionText = ({ encoding }: Pick<Answer, 'encoding'>): string => encoding || 'none';

/** Returns the media type without parameters, such as the character set. */
function typeText({ type }: Pick<Answer, 'type'>): string {
  const [mediaType = ''] = type.split(';', 1);
  return mediaType.trim().toLowerCase() || 'none';
}

/** Returns a row for each side, with only the columns in which sides differ; undefined if none does. */
export function differencesTable<Side extends { name: string }>(
  sides: readonly Side[],
  columns: readonly Column<Side>[],
): Table | undefined {
  const differing = columns.filter(({ cell }) => new Set(sides.map(cell)).size > 1);
  if (differing.length === 0) return undefined;
  return tableOf(sides, [leftColumn('side', ({ name }) => name), ...differing]);
}
