// What is known of the answers before any load: where those of the sides differ.
import { enumeration, whole } from '../format.ts';
import type { Page } from '../scenario/model.ts';
import { requestName, requestsOf } from '../scenario/pages.ts';
import type { Answer } from '../servers/server.ts';

/** A side and its answer. `given` names it in sentences. */
export interface Answered {
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

export function encodingLines(sides: readonly Answered[]): string[] {
  return differingLine(
    sides,
    ({ answer }) => answer.encoding || 'none',
    (how) => partOfIt('encodings', how),
  );
}

/** Answers of a log's requests with other statuses, and which requests other sides answer otherwise than the first: the first difference of each. */
export function requestLines(sides: readonly Answered[]): string[] {
  const [first, ...others] = sides;
  if (first === undefined) return [];
  const kinds = [
    ['status', 'another status'],
    ['encoding', 'another encoding'],
    ['bytes', 'another length'],
    ['hash', 'another body of the same length'],
  ] as const;
  const statuses = sides.flatMap(({ given, answer: { otherStatuses } }) =>
    otherStatuses === undefined ? [] : [`${given} answers ${otherStatuses}.`],
  );
  const differing = others.flatMap(({ given, answer: { each = [] } }) => {
    const before = first.answer.each ?? [];
    const requests = requestsOf(first.page);
    if (each.length !== before.length) return [];
    const found = kinds.flatMap(([, words], place) => {
      const own = requests.filter(
        (_request, index) =>
          place === kinds.findIndex(([kind]) => each[index]?.[kind] !== before[index]?.[kind]),
      );
      const [example] = own;
      return example === undefined
        ? []
        : [`${whole(own.length)} with ${words} (such as ${requestName(example)})`];
    });
    return found.length === 0
      ? []
      : [
          `Of ${whole(requests.length)} requests ${given} answers ${enumeration(found)} than ${first.given}.`,
        ];
  });
  return [...statuses, ...differing];
}
