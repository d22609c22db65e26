// The causes of differences, as perf saw them.
import type * as v from 'valibot';
import {
  count,
  each,
  nonNegative,
  list,
  name,
  oneOf,
  open,
  optional,
  text,
  texts,
} from '../form.ts';

const perRequest = { name: text, us: nonNegative };
/** perf's counters beside system calls. */
export const perfCounts = [
  'contextSwitches',
  'pageFaults',
  'instructions',
  'cycles',
  'cacheMisses',
  'branchMisses',
] as const;
/** Per request, while perf looked on. */
const whySide = open({
  variant: name,
  /** Settings that differ from the baseline's; absent if more than two. */
  changed: optional(texts),
  /** The pass that samples CPU time. */
  requests: count,
  countedRequests: optional(count),
  /** The kernel's account of this pass. */
  cpuUs: nonNegative,
  /** Most frequent first. */
  calls: list(open({ name: text, perRequest: nonNegative })),
  /** Absent if the machine does not count them. */
  counts: open({
    calls: nonNegative,
    ...each(perfCounts, optional(nonNegative)),
  }),
  /** Largest first: a system call, other work of the kernel, an object in user space. */
  cpu: list(open({ ...perRequest, kind: oneOf(['call', 'kernel', 'user']), sdUs: nonNegative })),
  /** Functions in user space with a symbol. */
  functions: list(open(perRequest)),
});
export type WhySide = v.InferOutput<typeof whySide>;
/** `missing`: why parts lack data. */
export const why = open({ missing: texts, sides: list(whySide) });
export type Why = v.InferOutput<typeof why>;
