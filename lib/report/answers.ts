// What is known of the answers before any load: where those of the sides differ.
import { enumeration, whole } from '../format.ts';
import { leftColumn, rightColumn, tableOf, type Column, type Table } from './table.ts';
import type { Page } from '../scenario/model.ts';
import { requestName, requestsOf } from '../scenario/pages.ts';
import type { Answer } from '../servers/server.ts';

/** A side and its answer. `given` names it in sentences. */
interface Answered {
  name: string;
  given: string;
  page: Pick<Page, 'path' | 'requests'>;
  answer: Answer;
}

/** Above the table of differences. */
export const differencesTitle = 'The sides differ in this, and part of what is seen comes from it:';

/** The columns of the answers themselves. */
export const answerColumns = {
  status: leftColumn('status', ({ answer: { status } }: Answered) => String(status)),
  compression: leftColumn('compression', ({ answer }: Answered) => compressionText(answer)),
  bytes: rightColumn('B of body', ({ answer: { bytes } }: Answered) => whole(bytes)),
  type: leftColumn('type', ({ answer }: Answered) => typeText(answer)),
};

export const compressionText = ({ encoding }: Pick<Answer, 'encoding'>): string =>
  encoding || 'none';

/** Without parameters, such as the character set. */
export function typeText({ type }: Pick<Answer, 'type'>): string {
  return (type.split(';')[0] as string).trim().toLowerCase() || 'none';
}

/** What the sides differ in: a row for each, and only columns that differ. undefined if none does. */
export function differencesTable<Side extends { name: string }>(
  sides: readonly Side[],
  columns: readonly Column<Side>[],
): Table | undefined {
  const differing = columns.filter(({ cell }) => new Set(sides.map(cell)).size > 1);
  if (differing.length === 0) return undefined;
  return tableOf(sides, [leftColumn('side', ({ name }) => name), ...differing]);
}

/** How an answer differs from another: the first of these that does. */
const kinds = {
  status: 'another status',
  encoding: 'another encoding',
  bytes: 'another length',
  hash: 'another body of the same length',
} as const;
const kindNames = Object.keys(kinds) as (keyof typeof kinds)[];

/** Answers of a log's requests with other statuses, and how they differ from the first side's. */
export function requestLines([first, ...others]: readonly Answered[]): string[] {
  if (first === undefined) return [];
  const statuses = [first, ...others].flatMap(({ given, answer: { otherStatuses } }) =>
    otherStatuses === undefined ? [] : `${given} answers ${otherStatuses}.`,
  );
  const requests = requestsOf(first.page);
  const before = first.answer.each ?? [];
  const differing = others.flatMap(({ given, answer: { each = [] } }) => {
    const how = (index: number) =>
      kindNames.find((kind) => each[index]?.[kind] !== before[index]?.[kind]);
    const counted = kindNames.flatMap((kind) => {
      const differently = requests.filter((_request, index) => how(index) === kind);
      const [example] = differently;
      if (example === undefined) return [];
      return `${whole(differently.length)} with ${kinds[kind]} (such as ${requestName(example)})`;
    });
    if (each.length !== before.length || counted.length === 0) return [];
    return `Of ${whole(requests.length)} requests ${given} answers ${enumeration(counted)} than ${first.given}.`;
  });
  return [...statuses, ...differing];
}
