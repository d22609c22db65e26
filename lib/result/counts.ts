// What a request costs in counts.
import type * as v from 'valibot';
import {
  count,
  each,
  list,
  name,
  nonNegative,
  oneOf,
  open,
  optional,
  signed,
  text,
  texts,
} from '../form.ts';

export const countNames = ['syscalls', 'bytes', 'segments', 'switches', 'faults'] as const;
export type CountName = (typeof countNames)[number];

/** All figures are per request. `requests`: of a pass. `missing`: what is not known and why, a line each. */
export const counted = open({
  requests: count,
  /** A figure of each pass. `calls`: system calls by name. */
  sides: list(
    open({
      variant: name,
      ...each(countNames, optional(list(nonNegative))),
      calls: optional(list(open({ name: text, perRequest: nonNegative }))),
    }),
  ),
  /** Variant − baseline. All three are equal if the passes of a side are alike. */
  differences: list(
    open({
      count: oneOf(countNames),
      variant: name,
      baseline: name,
      ...each(['difference', 'low', 'high'], signed),
    }),
  ),
  missing: texts,
});
export type Counted = v.InferOutput<typeof counted>;
