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
/** A side while perf looked on; all figures are per request. */
const whySide = open({
  variant: name,
  /** Settings that differ from the baseline's; absent if more than two. */
  changed: optional(texts),
  /** Requests that ended in the pass that samples CPU time. */
  requests: count,
  /** Requests that ended in the pass that counts calls. */
  countedRequests: optional(count),
  /** CPU time in this pass, as the kernel accounts it. */
  cpuUs: nonNegative,
  /** System calls, the most frequent first. */
  calls: list(open({ name: text, perRequest: nonNegative })),
  /** `calls`: all system calls. The others are absent if the machine does not count them. */
  counts: open({
    calls: nonNegative,
    ...each(perfCounts, optional(nonNegative)),
  }),
  /**
   * Largest first: a system call, other work of the kernel, an object in user space. Their sum is the CPU time per request in the rounds, if
   * that is known.
   */
  cpu: list(open({ ...perRequest, kind: oneOf(['call', 'kernel', 'user']), sdUs: nonNegative })),
  /** The largest functions in user space with a symbol. */
  functions: list(open(perRequest)),
});
export type WhySide = v.InferOutput<typeof whySide>;
/** The parts of the CPU time. `missing`: the parts without data, a line each. */
export const why = open({ missing: texts, sides: list(whySide) });
export type Why = v.InferOutput<typeof why>;
