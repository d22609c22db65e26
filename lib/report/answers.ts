// What is known of the answers before any load: where those of the sides differ.
import { whole } from '../format.ts';
import { leftColumn, rightColumn, tableOf, type Column, type Table } from './table.ts';
import type { Page } from '../scenario/model.ts';
import type { Answer } from '../servers/server.ts';

/** A side and its answer. `given` names it in sentences. */
export interface Answered {
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
