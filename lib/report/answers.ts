// What is known of the answers before any load: where those of the sides differ.
import { enumeration, whole } from '../format.ts';
import type { Page } from '../scenario/model.ts';
import { requestName, requestsOf } from '../scenario/pages.ts';
import type { Answer } from '../servers/server.ts';

/** A side and its answer. `given` names it in sentences. */
interface Answered {
  given: string;
  page: Pick<Page, 'path' | 'requests'>;
  answer: Answer;
}

/** The line with what each side has, if they do not have the same. */
export function differingLine<Side extends Pick<Answered, 'given'>>(
  sides: readonly Side[],
  of: (side: Side) => string,
  line: (how: string) => string,
): string[] {
  const found = sides.map(of);
  return new Set(found).size < 2
    ? []
    : [line(sides.map(({ given }, index) => `${given} ${found[index]}`).join(', '))];
}

export const partOfIt = (what: string, how: string): string =>
  `The ${what} differ: ${how}; part of what is seen is theirs.`;

export function lengthLines(sides: readonly Answered[]): string[] {
  return differingLine(
    sides,
    ({ answer }) => `${whole(answer.bytes)} B`,
    (how) => partOfIt('bodies', how),
  );
}

export function encodingLines(sides: readonly Answered[]): string[] {
  return differingLine(
    sides,
    ({ answer }) => answer.encoding || 'none',
    (how) => partOfIt('encodings', how),
  );
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
    const found = kindNames.flatMap((kind) => {
      const own = requests.filter((_request, index) => how(index) === kind);
      const [example] = own;
      return example === undefined
        ? []
        : `${whole(own.length)} with ${kinds[kind]} (such as ${requestName(example)})`;
    });
    return each.length !== before.length || found.length === 0
      ? []
      : `Of ${whole(requests.length)} requests ${given} answers ${enumeration(found)} than ${first.given}.`;
  });
  return [...statuses, ...differing];
}
